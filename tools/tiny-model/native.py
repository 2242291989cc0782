"""The pieces of reference.py for training: bfloat16 matrices, compiled from native/ at first use.

Products run on AMX or, where there is none, on AVX-512. Each function is an autograd.Function around
C functions on plain pointers. One thread: parallel training is by processes. x is float32; projections
and what goes into the next product are bfloat16.
"""
import ctypes
import functools
import glob
import hashlib
import os
import subprocess
import tempfile

import torch
import torch.nn.functional as F

import config
from config import text as c

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native")
FLAGS = ["-O3", "-march=native", "-shared", "-fPIC", "-Wno-uninitialized", "-Wno-maybe-uninitialized"]
LOW = torch.bfloat16


@functools.cache
def library():
    """The compiled library, kept in the temporary directory under a name made from its sources."""
    sources = sorted(glob.glob(os.path.join(HERE, "*.cpp")))
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for path in sorted(glob.glob(os.path.join(HERE, "*"))):
        with open(path, "rb") as f:
            digest.update(f.read())
    path = os.path.join(tempfile.gettempdir(), f"tiny-model-{os.getuid()}-{digest.hexdigest()[:16]}.so")
    if not os.path.exists(path):
        subprocess.run(["g++", *FLAGS, "-o", f"{path}.{os.getpid()}", *sources], check=True)
        os.replace(f"{path}.{os.getpid()}", path)
    return ctypes.CDLL(path)


def available():
    with open("/proc/cpuinfo") as f:
        return "avx512_bf16" in f.read()


def call(name, *arguments):
    """Tensors go as pointers, numbers as 64-bit integers, None as null."""
    for a in arguments:
        assert not isinstance(a, torch.Tensor) or a.is_contiguous()
    return getattr(library(), name)(*(
        ctypes.c_void_p(a.data_ptr()) if isinstance(a, torch.Tensor) else
        ctypes.c_void_p(None) if a is None else ctypes.c_int64(a) for a in arguments))


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        y = torch.empty(x.shape, dtype=LOW)
        call("norm_forward", x, weight, y, x[..., 0].numel(), x.shape[-1])
        ctx.save_for_backward(x, weight)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dx, dw = torch.empty_like(x), torch.zeros_like(weight)
        call("norm_backward", dy.contiguous(), x, weight, dx, dw, x[..., 0].numel(), x.shape[-1])
        return dx, dw


JOINTS = {}  # address of the first weight -> all of them, one below the other, in bfloat16


def joint_of(*weights):
    key = weights[0].data_ptr()
    if key not in JOINTS:
        JOINTS[key] = torch.cat(weights).to(LOW)
    return JOINTS[key]


def weights_changed():
    JOINTS.clear()


def gradient_of_joint(dy, x, rows):
    """Gradient of a joint weight matrix with this many rows."""
    dw = torch.zeros(rows, x.shape[-1])
    n = dy[..., 0].numel()
    if n % 64 or x.shape[-1] % 64:
        return dw + (dy.flatten(0, -2).mT @ x.flatten(0, -2))
    call("linear_gradient", dy.contiguous(), x.contiguous(), dw, n, rows, x.shape[-1])
    return dw


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *weights):
        joint = joint_of(*weights)
        ctx.save_for_backward(x, joint)
        ctx.rows = [w.shape[0] for w in weights]
        return F.linear(x, joint)

    @staticmethod
    def backward(ctx, dy):
        x, joint = ctx.saved_tensors
        return dy @ joint, *gradient_of_joint(dy, x, len(joint)).split(ctx.rows)


def by_key_head():
    """Rows of the joint projection [qkv | z | b | a] in the order of native/delta.h, and of qkv alone."""
    keys, repeat, d = c.linear_num_key_heads, config.HEAD_REPEAT, c.linear_key_head_dim
    starts = [[h * d, (keys + h) * d] + [(2 * keys + h * repeat + r) * d for r in range(repeat)] for h in range(keys)]
    gates = [[config.MIX_WIDTH + (h * repeat + r) * d for r in range(repeat)] for h in range(keys)]
    rest = torch.arange(config.MIX_WIDTH + config.VALUE_WIDTH, config.DELTA_WIDTH)
    rows = [torch.arange(s, s + d) for h in range(keys) for s in starts[h] + gates[h]]
    return torch.cat([*rows, rest]), torch.cat([torch.arange(s, s + d) for h in range(keys) for s in starts[h]])


JOINT_ROWS, MIX_ROWS = by_key_head()


class DeltaLinear(torch.autograd.Function):
    """Linear with its rows in the order that delta_core wants."""

    @staticmethod
    def forward(ctx, x, *weights):
        key = weights[0].data_ptr()
        if key not in JOINTS:
            JOINTS[key] = torch.cat(weights).to(LOW)[JOINT_ROWS]
        ctx.save_for_backward(x, JOINTS[key])
        ctx.rows = [w.shape[0] for w in weights]
        return F.linear(x, JOINTS[key])

    @staticmethod
    def backward(ctx, dy):
        x, joint = ctx.saved_tensors
        dw = gradient_of_joint(dy, x, len(joint))[JOINT_ROWS.argsort()]
        return dy @ joint, *dw.split(ctx.rows)


class Swiglu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p):
        n = p.shape[-1] // 2
        y = torch.empty(*p.shape[:-1], n, dtype=LOW)
        call("swiglu_forward", p, y, p[..., 0].numel(), n)
        ctx.save_for_backward(p)
        return y

    @staticmethod
    def backward(ctx, dy):
        p, = ctx.saved_tensors
        dp = torch.empty_like(p)
        call("swiglu_backward", p, dy.contiguous(), dp, p[..., 0].numel(), dy.shape[-1])
        return dp


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, embed, targets, weights):
        low = joint_of(embed)
        logits = F.linear(h, low)
        losses = torch.empty(len(targets))
        call("cross_entropy", logits, targets, weights, losses, *logits.shape)
        ctx.save_for_backward(h, low, logits)
        ctx.mark_non_differentiable(losses)
        return losses @ weights, losses

    @staticmethod
    def backward(ctx, dloss, _):
        h, low, dlogits = ctx.saved_tensors
        return (dlogits @ low) * dloss.to(LOW), (dlogits.mT @ h).float() * dloss, None, None


class DeltaCore(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, conv, A_log, dt_bias, norm_weight):
        B, T = p.shape[:2]
        taps = conv[MIX_ROWS, 0].mT.contiguous()
        y = torch.empty(B, T, config.VALUE_WIDTH, dtype=LOW)
        states = torch.empty(B, A_log.shape[0], T // 64, c.linear_key_head_dim, c.linear_value_head_dim, dtype=LOW)
        call("delta_forward", p, taps, A_log, dt_bias, norm_weight, y, states, None, None, B, T)
        ctx.save_for_backward(p, taps, A_log, dt_bias, norm_weight, states)
        return y

    @staticmethod
    def backward(ctx, dy):
        p, taps, A_log, dt_bias, norm_weight, states = ctx.saved_tensors
        dp = torch.empty_like(p)
        small = [torch.zeros_like(t) for t in (taps, A_log, dt_bias, norm_weight)]
        call("delta_backward", p, taps, A_log, dt_bias, norm_weight, states, dy.contiguous(), dp, *small, *p.shape[:2])
        dconv = torch.empty(config.MIX_WIDTH, 1, taps.shape[0])
        dconv[MIX_ROWS, 0] = small[0].mT
        return dp, dconv, *small[1:]


class AttentionIn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, q_norm, k_norm, cos, sin):
        q, gate = (torch.empty(*p.shape[:2], c.num_attention_heads, c.head_dim, dtype=LOW) for _ in range(2))
        k, v = (torch.empty(*p.shape[:2], c.head_dim, dtype=LOW) for _ in range(2))
        cos, sin = cos.contiguous(), sin.contiguous()
        call("attention_in", p, q_norm, k_norm, cos, sin, q, k, v, gate, p[..., 0].numel())
        ctx.save_for_backward(p, q_norm, k_norm, cos, sin)
        return q, k, v, gate

    @staticmethod
    def backward(ctx, *downstream):
        p, q_norm, k_norm, cos, sin = ctx.saved_tensors
        dp, dq_norm, dk_norm = torch.empty_like(p), torch.zeros_like(q_norm), torch.zeros_like(k_norm)
        call("attention_in_backward", p, q_norm, k_norm, cos, sin, *(d.contiguous() for d in downstream), dp, dq_norm,
             dk_norm, p[..., 0].numel())
        return dp, dq_norm, dk_norm, None, None


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, at):
        assert q.shape[1] % 64 == 0 and k.shape[1] % 64 == 0
        at = at.int()
        o, sums = torch.empty_like(q), torch.empty(q.shape[:-1])
        for i in range(q.shape[0]):
            call("attention_forward", q[i], k[i], v[i], c.head_dim, at, o[i], sums[i], q.shape[1], k.shape[1])
        ctx.save_for_backward(q, k, v, at, o, sums)
        return o, sums

    @staticmethod
    def backward(ctx, do, dsums):
        q, k, v, at, o, sums = ctx.saved_tensors
        do, dsums = do.contiguous(), dsums.contiguous()
        dq, dk, dv = torch.zeros(q.shape), torch.empty(k.shape), torch.empty(v.shape)
        for i in range(q.shape[0]):
            call("attention_backward", q[i], k[i], v[i], c.head_dim, at, o[i], sums[i], do[i], dsums[i],
                 dq[i], dk[i], dv[i], q.shape[1], k.shape[1])
        return dq, dk, dv, None


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, o):
        y = torch.empty_like(o)
        call("gate_forward", gate, o, y, o.numel())
        ctx.save_for_backward(gate, o)
        return y.flatten(-2)

    @staticmethod
    def backward(ctx, dy):
        gate, o = ctx.saved_tensors
        dgate, do = torch.empty_like(gate), torch.empty_like(o)
        call("gate_backward", gate, o, dy.contiguous(), dgate, do, o.numel())
        return dgate, do


def delta_core(p, conv, A_log, dt_bias, norm_weight, before=None, state=None):
    if state is None:
        return DeltaCore.apply(p, conv, A_log, dt_bias, norm_weight)
    y = torch.empty(*p.shape[:2], config.VALUE_WIDTH, dtype=LOW)
    call("delta_forward", p, conv[MIX_ROWS, 0].mT.contiguous(), A_log, dt_bias, norm_weight, y, None, before, state,
         *p.shape[:2])
    return y


def delta_inputs(p):
    """The inputs of the convolution in p."""
    return torch.cat([part[..., :config.MIX_WIDTH // c.linear_num_key_heads] for part in
                      p[..., :config.MIX_WIDTH + config.VALUE_WIDTH].chunk(c.linear_num_key_heads, -1)], -1)


norm, linear, delta_linear, swiglu, cross_entropy = (
    Norm.apply, Linear.apply, DeltaLinear.apply, Swiglu.apply, CrossEntropy.apply)
attention_in, attention, gate = AttentionIn.apply, Attention.apply, Gate.apply
