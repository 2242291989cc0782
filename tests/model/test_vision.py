"""Rows of pictures from the built encoder against the NumPy oracle in float64: odd grids, extreme shapes, video."""
import functools
import os
import subprocess

import numpy as np
import pytest
from model_runs import GOLDENS, ISAS, RUN_SECONDS_MAX
from test_data import BUILD, EMBEDDED

from qwen3_5_oracle import Model, geometry, read_safetensors, write_safetensors

TOOL = BUILD / "vision_tool"
MODELS = {"tinyvl": GOLDENS / "tinyvl", "hf_nested": GOLDENS / "hf_nested", "embedded": EMBEDDED}

# Frames, height and width in patches. The tallest and the widest have sides 1 : 48.
SHAPES = {"smallest": (1, 2, 2), "wide": (1, 2, 96), "tall": (1, 96, 2), "odd": (1, 10, 14), "two_pieces": (1, 26, 24),
          "keys_1088": (1, 32, 34), "video": (2, 6, 10), "video_wide": (2, 2, 34)}

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


def test_what_is_no_picture_is_refused(folder):
    given = folder / "bad.safetensors"
    write_safetensors(given, {"flat": np.zeros((1, 40, 32, 3), np.uint8)})
    done = subprocess.run([TOOL, MODELS["tinyvl"], given, folder / "never"], capture_output=True, text=True, check=False,
                          timeout=RUN_SECONDS_MAX)
    assert done.returncode == 1 and "flat" in done.stderr
    done = subprocess.run([TOOL, GOLDENS / "tiny27", given, folder / "never"], capture_output=True, text=True, check=False,
                          timeout=RUN_SECONDS_MAX)
    assert done.returncode == 1 and "no vision tower" in done.stderr
