"""The two references check each other: our NumPy oracle against what transformers computed."""
import subprocess
import sys

import numpy as np
import pytest
from model_runs import GOLDEN_NAMES, GOLDENS, ROOT, difference, golden

from qwen3_5_oracle import Model

# float32 rounding in transformers; the worst seen is 4e-5 at a standard deviation of 2.5.
MAX_DIFFERENCE = {"hf_nested": 2e-4, "hf_flat": 2e-4}
# The oracle's own goldens: rounding of the stored float32.
STORED = 2e-6


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_oracle_computes_the_golden(name):
    info, tensors = golden(name)
    model = Model.load(GOLDENS / name)
    bound = MAX_DIFFERENCE.get(name, STORED)
    for prompt in ("short", "long"):
        ids, tokens = info[prompt]["prompt"], info[prompt]["greedy"]
        greedy, logits, _ = model.greedy(ids, len(tokens))
        assert greedy == tokens
        assert difference(logits, tensors[f"{prompt}.greedy_logits"])[1] < bound
        if f"{prompt}.logits" in tensors:
            whole = model.head(model.forward(ids)[0])
            assert difference(whole, tensors[f"{prompt}.logits"])[1] < bound


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_greedy_winners_are_clear(name):
    info, tensors = golden(name)
    for prompt in ("short", "long"):
        top = np.sort(tensors[f"{prompt}.greedy_logits"], -1)
        margin = float((top[:, -1] - top[:, -2]).min())
        assert abs(margin - info[prompt]["min_top1_top2_margin"]) < 1e-3 and margin > 0.1


def test_selftest():
    subprocess.run([sys.executable, ROOT / "tools" / "oracle" / "selftest.py"], check=True, stdout=subprocess.DEVNULL)
