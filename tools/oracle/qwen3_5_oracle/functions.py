"""Element-wise functions, norms and rotary embeddings.

Two RMSNorm conventions live in this family: norm1p multiplies with (1 + weight) and is used
everywhere except inside the DeltaNet layer, where norm_gated multiplies with the plain weight.
"""
import math

import numpy as np


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


_erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu_erf(x):
    return (0.5 * x * (1 + _erf(np.asarray(x, np.float64) / math.sqrt(2)))).astype(x.dtype)


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def rms(x, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def norm1p(x, w, eps):
    """Every RMSNorm except the one inside DeltaNet scales by (1 + weight)."""
    return rms(x, eps) * (1 + w)


def norm_gated(x, gate, w, eps):
    """Plain weight, normalise first, then multiply with silu(gate)."""
    return rms(x, eps) * w * silu(gate)


def unit(x, eps=1e-6):
    """l2 norm with eps inside the square root."""
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + eps)


def layer_norm(x, w, b, eps=1e-6):
    m = x.mean(-1, keepdims=True)
    return (x - m) / np.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + eps) * w + b


# ---------------------------------------------------------------------------------------
# 4. rotary embeddings of the text model
# ---------------------------------------------------------------------------------------
def mrope_axis(cfg):
    """Which of (t, h, w) drives frequency i, i < rot/2."""
    n = cfg.rot // 2
    axis = np.zeros(n, np.int64)
    for a in (1, 2):
        axis[np.arange(a, min(3 * cfg.sections[a], n), 3)] = a
    return axis


def mrope_tables(cfg, pos, dtype):
    """cos, sin [T, rot/2] for pos [3, T]."""
    n = cfg.rot // 2
    inv = 1.0 / cfg.theta ** (np.arange(n, dtype=np.float64) * 2 / cfg.rot)
    ang = np.asarray(pos, np.float64)[mrope_axis(cfg), :].T * inv
    return np.cos(ang).astype(dtype), np.sin(ang).astype(dtype)


def rotate(x, cos, sin):
    """x [T, heads, d]; the first 2n channels rotate, channel i with i + n; the rest passes."""
    n = cos.shape[-1]
    a, b, rest = x[..., :n], x[..., n:2 * n], x[..., 2 * n:]
    c, s = cos[:, None, :], sin[:, None, :]
    return np.concatenate([a * c - b * s, b * c + a * s, rest], -1)
