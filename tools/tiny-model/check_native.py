"""Checks every piece of native.py and its gradient against reference.py in float32, and times it.

    python tools/tiny-model/check_native.py

Inputs are rounded to bfloat16 first, so what is left is the rounding inside: below one percent, two for
the few numbers of A_log and dt_bias, which are sums with much cancellation.
"""
import sys
import time

import torch

import config
import native
import reference
from config import text as c
from model import rotary_tables

B, T = 2, 512
BOUND, BOUND_FEW = 0.01, 0.03
ATTENTION_WIDTH = 2 * config.QUERY_WIDTH + 2 * c.head_dim


def normal(*shape, spread=1.0):
    return torch.randn(shape) * spread


def low(*shape, spread=1.0):
    return normal(*shape, spread=spread).bfloat16()


def cases():
    """Name -> inputs; a bfloat16 input goes to the reference as float32."""
    H, heads = c.hidden_size, c.linear_num_value_heads
    turns = rotary_tables(torch.arange(T)[None, :, None].expand(B, T, 3))
    seen, rows = torch.arange(T), torch.randint(0, T, (128,)).sort().values
    qkv = low(B, T, c.num_attention_heads, c.head_dim, spread=2.0), low(B, T, c.head_dim), low(B, T, c.head_dim)
    return [
        ("norm", [normal(B, T, H), normal(H, spread=0.1)]),
        ("linear", [low(B, T, H), normal(2 * H, H, spread=H ** -0.5), normal(H, H, spread=H ** -0.5)]),
        ("swiglu", [low(B, T, 2 * c.intermediate_size)]),
        ("delta_core", [low(B, T, config.DELTA_WIDTH),
                        normal(config.MIX_WIDTH, 1, c.linear_conv_kernel_dim, spread=0.4), normal(heads, spread=0.3),
                        normal(heads) - 4, 1 + normal(c.linear_value_head_dim, spread=0.1)]),
        ("attention_in", [low(B, T, ATTENTION_WIDTH), normal(c.head_dim, spread=0.1), normal(c.head_dim, spread=0.1),
                          *turns]),
        ("attention", [*qkv, seen]),
        ("attention", [low(B, 128, c.num_attention_heads, c.head_dim, spread=2.0), *qkv[1:], rows]),
        ("gate", [low(B, T, c.num_attention_heads, c.head_dim) for _ in range(2)]),
        ("cross_entropy", [low(B * T, H), normal(c.vocab_size, H, spread=0.1), torch.randint(0, 2000, (B * T,)),
                           torch.rand(B * T)]),
    ]


def piece(ops, name):
    if ops is native and name == "delta_core":
        return lambda p, *rest: native.delta_core(p[..., native.JOINT_ROWS].contiguous(), *rest)
    return getattr(ops, name)


def run(ops, name, inputs):
    """Outputs, gradients of the inputs, and the fewest seconds of three runs."""
    differ = [isinstance(x, torch.Tensor) and x.is_floating_point() for x in inputs]
    leaves = [x.clone().requires_grad_() if d else x for x, d in zip(inputs, differ)]
    seconds = []
    for _ in range(3):
        native.weights_changed()
        began = time.process_time()
        out = piece(ops, name)(*leaves)
        out = [y for y in (out if isinstance(out, tuple) else (out,)) if y.requires_grad]
        generator = torch.Generator().manual_seed(1)
        downstream = [torch.randn(y.shape, generator=generator).bfloat16().to(y.dtype) for y in out]
        wanted = [x for x, d in zip(leaves, differ) if d]
        gradients = torch.autograd.grad(out, wanted, downstream, allow_unused=True)
        seconds.append(time.process_time() - began)
    return out, gradients, min(seconds)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    good = True
    for name, inputs in cases():
        exact = [x.float() if isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16 else x for x in inputs]
        outputs, gradients, seconds = run(native, name, inputs)
        true_outputs, true_gradients, _ = run(reference, name, exact)
        errors = []
        for a, b in zip([*outputs, *gradients], [*true_outputs, *true_gradients]):
            if a is not None and b is not None:
                errors.append(((a - b).norm() / b.norm()).item())
                good &= errors[-1] < (BOUND_FEW if b.numel() < 10 else BOUND)
        print(f"{name}: {1e3 * seconds:.1f} ms, errors " + " ".join(f"{e:.4f}" for e in errors))
    sys.exit(not good)


if __name__ == "__main__":
    main()
