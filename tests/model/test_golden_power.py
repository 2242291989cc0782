"""What the goldens can see: each classic mistake, made in the oracle on purpose, must leave the
tolerance that the program has to keep. A golden that forgives one of these would be no test."""
import numpy as np
import pytest
from model_runs import GOLDEN_NAMES, GOLDENS, RMS_MAX, golden

from qwen3_5_oracle import Model, delta_rule, functions, model as oracle_model

def plain_norm(x, w, eps):
    return functions.rms(x, eps) * w


def gated_norm_1p(x, gate, w, eps):
    return functions.rms(x, eps) * (1 + w) * functions.silu(gate)


def gate_before_norm(x, gate, w, eps):
    return functions.rms(x * functions.silu(gate), eps) * w


def rotate_adjacent_pairs(x, cos, sin):
    n = cos.shape[-1]
    a, b, c, s = x[..., 0:2 * n:2], x[..., 1:2 * n:2], cos[:, None, :], sin[:, None, :]
    y = x.copy()
    y[..., 0:2 * n:2], y[..., 1:2 * n:2] = a * c - b * s, b * c + a * s
    return y


def rotate_backwards(x, cos, sin):
    """The first half turned the wrong way. (Turning both would be the same function of q and k.)"""
    n = cos.shape[-1]
    y = functions.rotate(x, cos, sin)
    y[..., :n] = x[..., :n] * cos[:, None, :] + x[..., n:2 * n] * sin[:, None, :]
    return y


def rule_with(change):
    """The recurrent rule with changed inputs."""
    def rule(q, k, v, g, beta, state=None):
        return delta_rule.delta_recurrent(*change(q, k, v, g, beta), state)
    return rule


def read_before_write(q, k, v, g, beta, state=None):
    """Token by token, the output taken from the state before the update."""
    rep = v.shape[1] // q.shape[1]
    q = np.repeat(functions.unit(q), rep, 1) / np.sqrt(q.shape[-1])
    k = np.repeat(functions.unit(k), rep, 1)
    S = np.zeros((v.shape[1], k.shape[-1], v.shape[-1])) if state is None else state.copy()
    out = np.empty_like(v)
    for t in range(v.shape[0]):
        S *= np.exp(g[t])[:, None, None]
        out[t] = np.einsum("hkv,hk->hv", S, q[t])
        seen = np.einsum("hkv,hk->hv", S, k[t])
        S += k[t][:, :, None] * ((v[t] - seen) * beta[t][:, None])[:, None, :]
    return out, S


def tiled_heads(q, k, v, g, beta, state=None):
    """Value head h reads key head h % nk instead of h / (nv / nk)."""
    nk, nv = q.shape[1], v.shape[1]
    return delta_rule.delta_recurrent(np.tile(q, (1, nv // nk, 1)), np.tile(k, (1, nv // nk, 1)), v, g, beta, state)


def reversed_conv(x, w, state):
    return delta_rule.conv_silu(x, w[:, ::-1], state)


def conv_without_silu(x, w, state):
    full = np.concatenate([state, x], 0)
    return sum(full[j:j + len(x)] * w[:, j] for j in range(w.shape[1])), full[-(w.shape[1] - 1):].copy()


# mistake -> name in the oracle's model.py, replacement.
RULE = "delta_chunked"
MISTAKES = {
    "norms multiply with w instead of 1 + w": ("norm1p", plain_norm),
    "DeltaNet norm multiplies with 1 + w": ("norm_gated", gated_norm_1p),
    "DeltaNet norm after the gate": ("norm_gated", gate_before_norm),
    "rotation of adjacent pairs": ("rotate", rotate_adjacent_pairs),
    "rotation with a wrong sign": ("rotate", rotate_backwards),
    "no decay": (RULE, rule_with(lambda q, k, v, g, b: (q, k, v, 0 * g, b))),
    "decay of half the logarithm": (RULE, rule_with(lambda q, k, v, g, b: (q, k, v, g / 2, b))),
    "decay taken from the token before": (RULE, rule_with(lambda q, k, v, g, b: (q, k, v, np.roll(g, 1, 0), b))),
    "beta left out": (RULE, rule_with(lambda q, k, v, g, b: (q, k, v, g, np.ones_like(b)))),
    "output from the state before the update": (RULE, read_before_write),
    "value heads tiled over key heads": (RULE, tiled_heads),
    "convolution taps reversed": ("conv_silu", reversed_conv),
    "no silu after the convolution": ("conv_silu", conv_without_silu),
    "softplus left out": ("softplus", lambda x: np.maximum(x, 0)),
    "attention gate through silu": ("sigmoid", functions.silu),
}
# Heads can only be mixed up where there are more value heads than key heads.
BLIND = {("value heads tiled over key heads", "tiny08"), ("value heads tiled over key heads", "hf_flat")}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_mistake_leaves_the_tolerance(name, mistake, monkeypatch):
    info, tensors = golden(name)
    attribute, replacement = MISTAKES[mistake]
    monkeypatch.setattr(oracle_model, attribute, replacement)
    model = Model.load(GOLDENS / name)
    logits = model.head(model.forward(info["long"]["prompt"])[0])
    rms = float(np.sqrt(((logits - tensors["long.logits"]) ** 2).mean()))
    print(f"{name}, {mistake}: rms {rms:.3f}")
    if (mistake, name) in BLIND:
        assert rms < 1e-5, "expected to be invisible here"
    else:
        assert rms > 1.5 * RMS_MAX
