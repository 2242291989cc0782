"""Quantised presets keep the promise of test_invariance.py, stay near bf16, and a packed directory
gives the bits of the same preset made at load."""
import json
import shutil

import numpy as np
import pytest
from model_runs import (GOLDENS, ISAS, MODELS, generate, is_fp8_module, random_ids, run, score, score_file,
                        write_model)

from qwen3_5_oracle import read_safetensors
from qwen3_5_oracle.safetensors import E4M3, as_bf16, dequant_fp8_block, quant_fp8_block

PRESETS = ("mlp-fp8", "fp8", "int8", "int4")
EACH = pytest.mark.parametrize("preset", PRESETS)
EACH_MODEL = pytest.mark.parametrize("name", ("tiny08", "tiny27", "tiny_odd", "random"))
LONGEST = 200

# Root mean square error of the logits relative to their deviation, on random weights: these models have no
# redundancy, trained ones lose less (docs/FORMATS.md).
ERROR_MAX = {"mlp-fp8": 0.2, "fp8": 0.25, "int8": 0.08, "int4": 0.6}


def pack(name, preset, folder):
    done = run("pack", MODELS[name], "-o", folder, "--preset", preset, "--quiet")
    assert done.returncode == 0, done.stderr
    return done.stdout


@EACH
@EACH_MODEL
@pytest.mark.parametrize("step", (1, 7, 33, 512))
def test_prefill_step_and_threads(name, preset, step):
    ids = random_ids(name, LONGEST)
    whole = score_file(MODELS[name], ids, preset=preset)
    assert score_file(MODELS[name], ids, preset=preset, prefill_step=step) == whole
    assert score_file(MODELS[name], ids, preset=preset, prefill_step=step, threads=1) == whole


@EACH
@EACH_MODEL
@pytest.mark.parametrize("isa", ISAS)
def test_instruction_set(name, preset, isa):
    ids = random_ids(name, LONGEST)
    whole = score_file(MODELS[name], ids, preset=preset)
    assert score_file(MODELS[name], ids, preset=preset, isa=isa, prefill_step=64) == whole


@EACH
@EACH_MODEL
def test_decode_equals_prefill(name, preset):
    ids = random_ids(name, 63)
    answer = generate(MODELS[name], ids, 20, "--logprobs", 1, "--preset", preset)
    tokens = answer["token_ids"]
    logits = score(MODELS[name], ids + tokens[:-1], preset=preset)[len(ids) - 1:]
    for row, entry in zip(logits, answer["logprobs"], strict=True):
        assert row[entry["token_id"]] == max(row[t["token_id"]] for t in entry["top_logprobs"])


@EACH
@EACH_MODEL
def test_stays_near_bf16(name, preset):
    ids = random_ids(name, LONGEST)
    exact = score(MODELS[name], ids).astype(np.float64)
    error = score(MODELS[name], ids, preset=preset) - exact
    relative = np.sqrt((error * error).mean()) / exact.std()
    assert 0 < relative < ERROR_MAX[preset]


@pytest.mark.parametrize("preset", ("mlp-fp8", "fp8"))
@pytest.mark.parametrize("name", ("tiny08", "tiny27", "tiny_odd"))
def test_fp8_is_a_bf16_model_of_its_weights(name, preset, tmp_path):
    """Blocks made by another implementation and widened to bfloat16: the same bits."""
    raw = json.loads((GOLDENS / name / "config.json").read_text())
    values = read_safetensors(GOLDENS / name / "model.safetensors")
    kept = read_safetensors(GOLDENS / name / "model.safetensors", raw=True)
    assert all(v.dtype in (np.uint16, np.float32) for v in kept.values())
    tensors = {n: as_bf16(v) if kept[n].dtype == np.uint16 else v for n, v in values.items()}
    for n, value in values.items():
        if is_fp8_module(n) and (preset == "fp8" or ".mlp." in n):
            codes, scales = quant_fp8_block(value, scale_bf16=False)
            tensors[n] = as_bf16(dequant_fp8_block(E4M3[codes], scales))
    write_model(tmp_path / "wide", raw, tensors)
    ids = random_ids(name, LONGEST)
    wide = score_file(tmp_path / "wide", ids)
    assert score_file(MODELS[name], ids, preset=preset) == wide
    assert wide != score_file(MODELS[name], ids)


@pytest.mark.parametrize("preset", ("bf16", *PRESETS))
@pytest.mark.parametrize("name", ("tiny08", "tiny27", "hf_nested"))
def test_packed_directory_gives_the_same_bits(name, preset, tmp_path):
    ids = random_ids(name, LONGEST)
    report = pack(name, preset, tmp_path / "packed")
    assert "down_proj.weight" in report and f"as {preset}" in report
    assert score_file(tmp_path / "packed", ids) == score_file(MODELS[name], ids, preset=preset)
    manifest = json.loads((tmp_path / "packed" / "sluice.json").read_text())
    assert manifest["preset"] == preset and manifest["format_version"] == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["packed"]


def test_damaged_directory_is_refused(tmp_path):
    pack("tiny08", "int8", tmp_path / "packed")
    weights = tmp_path / "packed" / "weights.sluice"
    raw = bytearray(weights.read_bytes())
    raw[len(raw) // 3] ^= 1
    weights.write_bytes(raw)
    done = run("score", tmp_path / "packed", "--token-ids", "3")
    assert done.returncode == 1 and "checksum" in done.stderr and "weights.sluice" in done.stderr
    weights.write_bytes(raw[:-1])
    done = run("score", tmp_path / "packed", "--token-ids", "3")
    assert done.returncode == 1 and "truncated" in done.stderr


def test_what_cannot_be_is_said(tmp_path):
    pack("tiny08", "int8", tmp_path / "packed")
    done = run("score", tmp_path / "packed", "--token-ids", "3", "--preset", "int4")
    assert done.returncode == 1 and "packed as int8" in done.stderr
    done = run("pack", MODELS["tiny08"], "-o", tmp_path / "packed")
    assert done.returncode == 1 and "exists" in done.stderr
    done = run("pack", tmp_path / "packed", "-o", tmp_path / "again")
    assert done.returncode == 1 and "packed already" in done.stderr
    done = run("score", MODELS["tiny08"], "--token-ids", "3", "--preset", "int3")
    assert done.returncode == 2 and "--preset" in done.stderr
    shutil.rmtree(tmp_path / "packed")
    assert not list(tmp_path.iterdir())
