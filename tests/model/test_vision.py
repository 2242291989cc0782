"""Rows of pictures from the built encoder against the NumPy oracle in float64: odd grids, extreme shapes, video."""
import functools
import json
import os
import subprocess

import numpy as np
import pytest
from model_runs import GOLDENS, ISAS, RUN_SECONDS_MAX
from test_data import BUILD, EMBEDDED

from qwen3_5_oracle import Model, geometry, read_safetensors, write_safetensors

TOOL = BUILD / "vision_tool"
MODELS = {"tinyvl": GOLDENS / "tinyvl", "hf_nested": GOLDENS / "hf_nested", "embedded": EMBEDDED}

# Frames, height and width in patches. The tallest and the widest have sides 1 : 200, the limit.
SHAPES = {"smallest": (1, 2, 2), "wide": (1, 2, 96), "tall": (1, 96, 2), "widest": (1, 2, 400), "tallest": (1, 400, 2),
          "odd": (1, 10, 14), "two_pieces": (1, 26, 24), "keys_1088": (1, 32, 34), "video": (2, 6, 10), "video_wide": (2, 2, 34)}

# Root mean square of the difference over that of the rows; the worst seen is 0.0038.
RELATIVE_RMS_MAX = 0.006


@functools.cache
def pictures():
    """Half noise, half even areas with edges."""
    rng = np.random.default_rng(7)
    made = {}
    for name, (frames, rows, columns) in SHAPES.items():
        noise = rng.integers(0, 256, (frames, rows * 16, columns * 16, 3))
        areas = np.kron(rng.integers(0, 256, (frames, rows, columns, 3)), np.ones((1, 16, 16, 1)))
        made[name] = np.where(rng.random((frames, rows, columns, 1)).repeat(16, 1).repeat(16, 2) < 0.5, noise,
                              areas).astype(np.uint8)
    return made


@functools.cache
def encoded(model, folder, isa=None):
    assert TOOL.exists(), f"{TOOL} is not built"
    given, out = folder / "pictures.safetensors", folder / f"{model}-{isa}.safetensors"
    write_safetensors(given, pictures())
    environment = {k: v for k, v in os.environ.items() if k != "SLUICE_FORCE_ISA"} | ({"SLUICE_FORCE_ISA": isa} if isa else {})
    done = subprocess.run([TOOL, MODELS[model], given, out], env=environment, capture_output=True, text=True,
                          timeout=RUN_SECONDS_MAX, check=False)
    if isa and "is not available on this CPU" in done.stderr:
        pytest.skip(f"SLUICE_FORCE_ISA={isa}: this machine does not have it")
    assert done.returncode == 0, done.stderr
    return read_safetensors(out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("vision")


@functools.cache
def oracle(model):
    return Model.load(MODELS[model])


@pytest.mark.parametrize("picture", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_rows_match_the_oracle(model, picture, folder):
    frames = pictures()[picture]
    patches, grid = geometry.patchify(np.stack([geometry.normalise(frame) for frame in frames]))
    expected = oracle(model).vision(patches, [grid])
    ours = encoded(model, folder)[picture]
    assert ours.shape == expected.shape
    relative = float(np.sqrt(((ours - expected) ** 2).mean() / (expected ** 2).mean()))
    print(f"{model} {picture}: relative rms {relative:.5f}, largest {np.abs(ours - expected).max():.4f} of "
          f"{np.abs(expected).max():.2f}")
    assert relative < RELATIVE_RMS_MAX


@pytest.mark.parametrize("isa", ISAS)
def test_rows_are_the_same_on_each_isa(isa, folder):
    best = encoded("tinyvl", folder)
    for name, rows in encoded("tinyvl", folder, isa).items():
        assert rows.tobytes() == best[name].tobytes(), name


@pytest.mark.parametrize("seed", range(12))
def test_positions_of_random_prompts_match_the_oracle(seed):
    """Text, pictures of all shapes and videos, some right behind each other."""
    rng = np.random.default_rng(seed)
    config = oracle("tinyvl").cfg
    ids, spans, images, videos = [7] * int(rng.integers(0, 9)), [], [], []
    for _ in range(int(rng.integers(1, 7))):
        rows, columns = (2 * int(np.ceil(np.exp(rng.uniform(0, np.log(60))))) for _ in range(2))
        frames = int(rng.integers(1, 5)) if rng.random() < 0.4 else 1
        (images if frames == 1 else videos).append((1 if frames == 1 else frames, rows, columns))
        for _ in range(frames):
            spans.append([len(ids), rows, columns])
            ids += [config.image_id if frames == 1 else config.video_id] * (rows * columns // 4)
            ids += [7] * int(rng.integers(1 if frames > 1 else 0, 9))
    wanted, offset = geometry.rope_positions(config, ids, images, videos)
    told = subprocess.run([TOOL, "positions", json.dumps(spans), str(len(ids) + 3)], capture_output=True, text=True,
                          check=True, timeout=RUN_SECONDS_MAX).stdout
    beyond = [[len(ids) + offset + i] * 3 for i in range(3)]
    assert json.loads(told) == wanted.T.tolist() + beyond


def test_what_is_no_picture_is_refused(folder):
    given = folder / "bad.safetensors"
    write_safetensors(given, {"flat": np.zeros((1, 40, 32, 3), np.uint8)})
    done = subprocess.run([TOOL, MODELS["tinyvl"], given, folder / "never"], capture_output=True, text=True, check=False,
                          timeout=RUN_SECONDS_MAX)
    assert done.returncode == 1 and "flat" in done.stderr
    done = subprocess.run([TOOL, GOLDENS / "tiny27", given, folder / "never"], capture_output=True, text=True, check=False,
                          timeout=RUN_SECONDS_MAX)
    assert done.returncode == 1 and "no vision tower" in done.stderr
