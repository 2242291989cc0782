"""The pieces of the layers in plain PyTorch, for any type and machine. native.py has the same ones.

Rows are tokens: x [B, T, H] float32 is the residual stream, p a joint projection, both as in model.py.
"""
import torch
import torch.nn.functional as F

import config
from config import text as c

LOW = None  # the type of products where it is not that of the weights
CHUNK = 64
FEW = 8  # tokens: fewer go one by one


def norm(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + c.rms_norm_eps) * (1 + weight)


def linear(x, *weights):
    return F.linear(x, torch.cat(weights))


def delta_linear(x, *weights):
    """The joint projection of a gated-delta layer; native.py has its rows in another order."""
    return linear(x, *weights)


def delta_inputs(p):
    """The inputs of the convolution in p."""
    return p[..., :config.MIX_WIDTH]


def swiglu(p):
    gate, up = p.chunk(2, -1)
    return F.silu(gate) * up


def cross_entropy(h, embed, targets, weights):
    """Weighted sum of -log p of the targets, and -log p; h [R, H]."""
    losses = F.cross_entropy(F.linear(h, embed), targets, reduction="none")
    return losses @ weights, losses.detach()


def delta_core(p, conv, A_log, dt_bias, norm_weight, before=None, state=None):
    """From the projections [qkv | z | b | a] to the input of out_proj. before [B, 3, channels] and state
    [B, heads, key, value] go on with a sequence; the state is changed in place."""
    B, T = p.shape[:2]
    u, z, b, a = p.split([config.MIX_WIDTH, config.VALUE_WIDTH] + 2 * [c.linear_num_value_heads], -1)
    taps = c.linear_conv_kernel_dim
    u = torch.cat([p.new_zeros(B, taps - 1, u.shape[-1]) if before is None else before, u], 1)
    m = F.silu(sum(u[:, j:j + T] * conv[:, 0, j] for j in range(taps)))
    q, k, v = m.split([config.KEY_WIDTH, config.KEY_WIDTH, config.VALUE_WIDTH], -1)
    q, k, v = (x.unflatten(-1, (-1, c.linear_key_head_dim)) for x in (q, k, v))
    q, k = (x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    g = -A_log.exp() * F.softplus(a + dt_bias)
    o = delta_rule(q * c.linear_key_head_dim ** -0.5, k, v, g, b.sigmoid(), state)
    o = o * torch.rsqrt(o.square().mean(-1, keepdim=True) + c.rms_norm_eps) * norm_weight
    return o.flatten(-2) * F.silu(z)


def delta_rule(q, k, v, g, beta, state=None):
    """In chunks; with c the running sum of g in a chunk and S the state before it:

        D[i,j] = exp(c[i] - c[j]), j <= i         L = beta[i] (k k') * D, j < i
        X = v - exp(c) k S                        N = (I + L)^-1 diag(beta) X
        o = exp(c) q S + ((q k') * D) N           S <- exp(c[last]) S + (exp(c[last] - c) k)' N

    The inverse is by substitution: a product of powers of L overflows where keys are alike.
    """
    T = q.shape[1]
    if T < FEW and state is not None:
        return token_by_token(q, k, v, g, beta, state)
    pad = -T % CHUNK
    q, k = (x.repeat_interleave(config.HEAD_REPEAT, 2) for x in (q, k))
    q, k, v, g, beta = (F.pad(x, (0, 0) * (x.dim() - 2) + (0, pad)).transpose(1, 2).unflatten(2, (-1, CHUNK))
                        for x in (q, k, v, g, beta))                          # [B, heads, chunks, CHUNK, ...]
    run = g.cumsum(-1)
    row = torch.arange(CHUNK)
    seen = row[:, None] >= row
    D = torch.where(seen, run[..., :, None] - run[..., None, :], -torch.inf).exp()
    L = torch.where(row[:, None] > row, beta[..., None] * (k @ k.mT) * D, 0)
    eye = torch.eye(CHUNK, dtype=q.dtype)
    inverse = torch.linalg.solve_triangular(L + eye, eye.expand(L.shape), upper=False, unitriangular=True)
    N_of_X = inverse * beta[..., None, :]
    A = (q @ k.mT) * D
    rise, fall = run.exp()[..., None], (run[..., -1:] - run).exp()[..., None]
    S = q.new_zeros(*q.shape[:2], q.shape[-1], v.shape[-1]) if state is None else state
    out = []
    for i in range(q.shape[2]):
        N = N_of_X[:, :, i] @ (v[:, :, i] - rise[:, :, i] * (k[:, :, i] @ S))
        out.append(rise[:, :, i] * (q[:, :, i] @ S) + A[:, :, i] @ N)
        S = rise[:, :, i, -1:] * S + (fall[:, :, i] * k[:, :, i]).mT @ N
    if state is not None:
        state.copy_(S)
    return torch.cat(out, 2)[:, :, :T].transpose(1, 2)


def token_by_token(q, k, v, g, beta, S):
    out = []
    q, k = (x.repeat_interleave(config.HEAD_REPEAT, 2) for x in (q, k))
    for t in range(q.shape[1]):
        S *= g[:, t].exp()[..., None, None]
        wrong = v[:, t] - (k[:, t, :, None] @ S)[:, :, 0]
        S += k[:, t, :, :, None] * (beta[:, t, :, None] * wrong)[:, :, None]
        out.append((q[:, t, :, None] @ S)[:, :, 0])
    return torch.stack(out, 1)


def attention_in(p, q_norm, k_norm, cos, sin):
    """p = [per head: q | gate; k | v] -> q and gate [B, T, heads, 256], k, v [B, T, 256]."""
    q, k, v = p.split([2 * config.QUERY_WIDTH, c.head_dim, c.head_dim], -1)
    q, gate = q.unflatten(-1, (c.num_attention_heads, -1)).chunk(2, -1)
    q, k = norm(q, q_norm), norm(k, k_norm)[..., None, :]
    return rotate(q, cos, sin), rotate(k, cos, sin)[..., 0, :], v, gate


def rotate(x, cos, sin):
    """x [..., heads, d]: channel i turns with channel i + 32; from 64 on they pass."""
    n = cos.shape[-1]
    a, b, rest = x[..., :n], x[..., n:2 * n], x[..., 2 * n:]
    cos, sin = cos[..., None, :], sin[..., None, :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


def attention(q, k, v, at):
    """Row r sees keys 0..at[r]. Returns o like q and the log of the sum of exponentials [B, R, heads]."""
    scores = torch.einsum("brhd,bkd->brhk", q, k) * c.head_dim ** -0.5
    unseen = torch.arange(k.shape[1]) > at[:, None]
    scores = scores.masked_fill(unseen[:, None], -torch.inf)
    return scores.softmax(-1) @ v[:, None], scores.logsumexp(-1)


def gate(gates, o):
    return (o * gates.sigmoid()).flatten(-2)
