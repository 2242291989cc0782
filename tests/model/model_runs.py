"""Runs of the built program, and the models and goldens they are compared with.

Scores are kept for the session: the same run is not made twice.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from test_data import ROOT, SLUICE, random_model

sys.path.insert(0, str(ROOT / "tools" / "oracle"))

from qwen3_5_oracle import read_safetensors, write_safetensors  # noqa: E402

GOLDENS = ROOT / "tests" / "goldens"
GOLDEN_NAMES = ("tiny27", "tiny08", "tiny_odd", "hf_nested", "hf_flat")
MODELS = {name: GOLDENS / name for name in GOLDEN_NAMES} | {"random": random_model()}
ISAS = ("ref", "avx2", "avx512", "amx")
RUN_SECONDS_MAX = 300

# How far logits (standard deviation 2.5 to 3) may be from the references. The reference code itself
# deviates by rms 0.05 and 0.34 at most in bfloat16; ours was seen at 0.031 and 0.30.
RMS_MAX, LARGEST_MAX = 0.05, 0.5


def golden(name):
    """golden.json and the tensors of golden.safetensors."""
    info = json.loads((GOLDENS / name / "golden.json").read_text())
    return info, read_safetensors(GOLDENS / name / "golden.safetensors")


def write_model(directory, raw, tensors):
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(raw))
    write_safetensors(directory / "model.safetensors", tensors)


def is_fp8_module(name):
    """The linears that the official FP8 releases quantise."""
    return name.endswith(tuple(f".{m}.weight" for m in (
        "in_proj_qkv", "in_proj_z", "out_proj", "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
        "down_proj")))


def known_ids(name):
    """How many ids of a model have a token: rows of the embedding beyond are never chosen."""
    config = MODELS[name] / "tokenizer_config.json"
    if config.exists():
        return 1 + max(map(int, json.loads(config.read_text())["added_tokens_decoder"]))
    raw = json.loads((MODELS[name] / "config.json").read_text())
    return raw.get("text_config", raw)["vocab_size"]


def random_ids(model, count, seed=1):
    """Token ids that have a meaning in every model here (the smallest vocabulary has 250)."""
    return np.random.default_rng([seed, len(model)]).integers(2, 240, count).tolist()


def joined(ids):
    return ",".join(map(str, ids))


def run(*args, isa=None):
    """Runs the program; skips the test when this machine lacks the instruction set."""
    assert SLUICE.exists(), f"{SLUICE} is not built"
    environment = {k: v for k, v in os.environ.items() if k != "SLUICE_FORCE_ISA"}
    if isa:
        environment["SLUICE_FORCE_ISA"] = isa
    done = subprocess.run([str(SLUICE), *map(str, args)], env=environment, capture_output=True, text=True,
                          timeout=RUN_SECONDS_MAX, check=False)
    if isa and done.returncode == 1 and "SLUICE_FORCE_ISA" in done.stderr:
        assert isa in done.stderr, "the refusal does not name what was asked for"
        pytest.skip(f"SLUICE_FORCE_ISA={isa}: this machine does not have it")
    return done


_scores = {}


def score_file(directory, ids, isa=None, **options):
    """The bytes of the logits file of `sluice score`. options: prefill_step, threads."""
    key = (str(directory), tuple(ids), isa, tuple(sorted(options.items())))
    if key not in _scores:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "logits.safetensors"
            flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
            done = run("score", directory, "--token-ids", joined(ids), "--logits-out", out, *flags, isa=isa)
            assert done.returncode == 0, done.stderr
            _scores[key] = out.read_bytes()
    return _scores[key]


def logits_of(file_bytes):
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as f:
        f.write(file_bytes)
        f.flush()
        tensors = read_safetensors(f.name)
    assert list(tensors) == ["logits"] and tensors["logits"].dtype == np.float32
    return tensors["logits"]


def score(directory, ids, **options):
    """Logits [T, vocab] float32."""
    return logits_of(score_file(directory, ids, **options))


def generate(directory, ids, steps, *flags, isa=None):
    """The JSON object of a greedy `sluice generate` of exactly `steps` tokens."""
    done = run("generate", directory, "--token-ids", joined(ids), "--max-tokens", steps, "--ignore-eos", "--json",
               "--temperature", 0, *flags, isa=isa)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert len(answer["token_ids"]) == steps and answer["finish_reason"] == "length"
    return answer


def difference(ours, expected):
    """Root mean square and largest absolute difference."""
    d = np.asarray(ours, np.float64) - np.asarray(expected, np.float64)
    return float(np.sqrt((d * d).mean())), float(abs(d).max())
