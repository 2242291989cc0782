"""The gated delta rule (token by token, and in chunks) and the causal convolution before it."""
import math

import numpy as np

from .functions import silu, unit


def delta_recurrent(q, k, v, g, beta, state=None):
    """Token by token.  q,k [T,nk,dk] raw (not normalised), v [T,nv,dv], g,beta [T,nv].

    Returns o [T,nv,dv] and the state after the last token.
    """
    rep = v.shape[1] // q.shape[1]
    q = np.repeat(unit(q), rep, 1) / math.sqrt(q.shape[-1])
    k = np.repeat(unit(k), rep, 1)
    nv, dk, dv = v.shape[1], k.shape[-1], v.shape[-1]
    S = np.zeros((nv, dk, dv), v.dtype) if state is None else state.astype(v.dtype).copy()
    out = np.empty_like(v)
    for t in range(v.shape[0]):
        S *= np.exp(g[t])[:, None, None]
        seen = np.einsum("hkv,hk->hv", S, k[t])
        S += k[t][:, :, None] * ((v[t] - seen) * beta[t][:, None])[:, None, :]
        out[t] = np.einsum("hkv,hk->hv", S, q[t])
    return out, S


def delta_chunked(q, k, v, g, beta, state=None, chunk=64):
    """The same function as delta_recurrent, one chunk at a time.  The last chunk may be short."""
    rep = v.shape[1] // q.shape[1]
    q = (np.repeat(unit(q), rep, 1) / math.sqrt(q.shape[-1])).transpose(1, 0, 2)
    k = np.repeat(unit(k), rep, 1).transpose(1, 0, 2)
    v_ = v.transpose(1, 0, 2)
    g_, b_ = g.T, beta.T
    nv, T, dv = v_.shape
    S = np.zeros((nv, k.shape[-1], dv), v.dtype) if state is None else state.astype(v.dtype).copy()
    out = np.empty_like(v_)
    for s in range(0, T, chunk):
        e = min(T, s + chunk)
        Q, K, V, B = q[:, s:e], k[:, s:e], v_[:, s:e], b_[:, s:e, None]
        c = np.cumsum(g_[:, s:e], -1)                       # log decay from chunk start, inclusive
        low = np.tril(np.ones((e - s, e - s), bool))
        gap = np.where(low, c[:, :, None] - c[:, None, :], -np.inf)
        D = np.exp(gap)                                     # decay j -> i, zero above the diagonal
        M = np.eye(e - s, dtype=v.dtype) + np.tril(B * np.einsum("hik,hjk->hij", K, K) * D, -1)
        rhs = np.concatenate([B * V, B * K * np.exp(c)[:, :, None]], -1)
        sol = np.linalg.solve(M, rhs)                       # unit lower triangular
        U, W = sol[..., :dv], sol[..., dv:]
        N = U - W @ S                                       # corrected values written per token
        out[:, s:e] = (Q * np.exp(c)[:, :, None]) @ S + (np.einsum("hik,hjk->hij", Q, K) * D) @ N
        tail = np.exp(c[:, -1:] - c)[:, :, None]
        S = S * np.exp(c[:, -1])[:, None, None] + (K * tail).transpose(0, 2, 1) @ N
    return out.transpose(1, 0, 2), S


def conv_silu(x, w, state):
    """Causal depthwise convolution over time, then silu.  x [T,C], w [C,K] (checkpoint [C,1,K]), state [K-1,C] = the inputs just before x."""
    K = w.shape[1]
    full = np.concatenate([state, x], 0)
    y = sum(full[j:j + x.shape[0]] * w[:, j] for j in range(K))
    return silu(y), full[full.shape[0] - (K - 1):].copy()
