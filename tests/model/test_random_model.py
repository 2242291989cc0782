"""tools/random-model: its shape table against published byte totals, its files against the oracle."""
import json
import subprocess
import sys

import numpy as np
import pytest
from model_runs import ROOT

from qwen3_5_oracle import Model, read_safetensors

MAKER = ROOT / "tools" / "random-model"
sys.path.insert(0, str(MAKER))

from shapes import PRESETS, byte_count, list_tensors, make_config  # noqa: E402

# Tensors and bytes of the releases, MTP and vision tower included (from their index files).
PUBLISHED = {"0.8b": (488, 1746882752), "2b": (632, 4548144832), "4b": (738, 9319737856),
             "9b": (775, 19306216416), "27b": (1199, 55562855904)}


@pytest.mark.parametrize("preset", PUBLISHED)
def test_published_totals(preset):
    tensors = list_tensors(make_config(preset, {}, mtp=True, vision=True), PRESETS[preset][2])
    assert (len(tensors), sum(map(byte_count, tensors))) == PUBLISHED[preset]


def make(out, *args):
    subprocess.run([sys.executable, MAKER / "make_model.py", "--out", str(out), *args], check=True)


SMALL = [f"--set={f}" for f in ("hidden_size=64", "intermediate_size=96", "vocab_size=300", "num_attention_heads=2",
                                "num_key_value_heads=1", "linear_num_key_heads=2", "linear_num_value_heads=4")]


def test_oracle_runs_it(tmp_path):
    make(tmp_path / "a", *SMALL, "--layers=4", "--mtp")
    model = Model.load(tmp_path / "a")
    h, _ = model.forward(np.arange(3, 60))
    logits = model.head(h)
    assert np.isfinite(logits).all() and 0.5 < logits.std() < 10
    qkv = model.w["model.language_model.layers.0.linear_attn.in_proj_qkv.weight"]
    assert abs((qkv[:256] * qkv[256:512]).sum() / (qkv[:256] ** 2).sum() - 0.8) < 0.05


def test_shards_hold_the_same(tmp_path):
    make(tmp_path / "one", *SMALL, "--layers=4")
    make(tmp_path / "many", *SMALL, "--layers=4", "--shard-gb=0.0005")
    index = json.loads((tmp_path / "many" / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) > 1
    one = read_safetensors(tmp_path / "one" / "model.safetensors")
    for name, file in index["weight_map"].items():
        assert np.array_equal(one.pop(name), read_safetensors(tmp_path / "many" / file)[name]), name
    assert not one


def test_unknown_field_is_refused(tmp_path):
    run = subprocess.run([sys.executable, MAKER / "make_model.py", "--out", str(tmp_path / "x"),
                          "--set", "hidden=3"], capture_output=True, text=True)
    assert run.returncode == 2 and "hidden" in run.stderr and not (tmp_path / "x").exists()
