"""Muon for the matrices of the layers, Adam for everything else.

Muon replaces a matrix's momentum by the nearest semi-orthogonal matrix (five Newton-Schulz steps), so
every direction moves at the same speed. Projections of several parts (query, key and value; query and
gate of a head) are orthogonalised part by part; all parts of one shape go through in one batch.
"""
import math

import torch

import config

MUON_RATE, ADAM_RATE = 0.02, 0.004
MOMENTUM = 0.95
BETAS = 0.9, 0.95
DECAY = 0.05  # of Muon's matrices, per unit of learning rate x step
NOT_MUON = ("embed_tokens", "pos_embed", "mtp.fc", "conv1d", "in_proj_a", "in_proj_b", "patch_embed")
PART_ROWS = {"in_proj_qkv": config.KEY_WIDTH, "q_proj": config.text.head_dim, "attn.qkv": config.vision.hidden_size}


def uses_muon(name, shape):
    return len(shape) == 2 and not any(part in name for part in NOT_MUON)


def part_rows(name, shape):
    return next((rows for part, rows in PART_ROWS.items() if part in name), shape[0])


def state_names(name, shape):
    return ["first." + name] if uses_muon(name, shape) else ["first." + name, "second." + name]


def step(w, gradients, state, names, steps, rate):
    """Updates `names` of w in place. steps: those done, with this one; rate: 0..1, of the learning rates."""
    parts = {}  # shape of a part -> list of (part of the weight, its direction)
    for name in names:
        weight, gradient = w[name], gradients[name]
        first = state["first." + name]
        if not uses_muon(name, weight.shape):
            adam(weight, gradient, first, state["second." + name], steps, rate * ADAM_RATE)
            continue
        first.lerp_(gradient, 1 - MOMENTUM)
        rows = part_rows(name, weight.shape)
        pairs = zip(weight.split(rows), gradient.lerp(first, MOMENTUM).split(rows))
        parts.setdefault((rows, weight.shape[1]), []).extend(pairs)
    for (rows, columns), pairs in parts.items():
        updates = orthogonal(torch.stack([direction for _, direction in pairs]))
        speed = rate * MUON_RATE * math.sqrt(max(1, rows / columns))
        for (weight, _), update in zip(pairs, updates):
            weight.mul_(1 - rate * MUON_RATE * DECAY).sub_(update, alpha=speed)


def adam(weight, gradient, first, second, steps, rate):
    first.lerp_(gradient, 1 - BETAS[0])
    second.lerp_(gradient.square(), 1 - BETAS[1])
    mean, square = first / (1 - BETAS[0] ** steps), second / (1 - BETAS[1] ** steps)
    weight.sub_(mean / (square.sqrt() + 1e-10), alpha=rate)


def orthogonal(m):
    """[n, rows, columns] -> nearly semi-orthogonal matrices, by Newton-Schulz iteration (Jordan et al. 2024)."""
    x = m.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT.contiguous()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-12)
    for _ in range(5):
        a = x @ x.mT
        b = torch.baddbmm(a, a, a, beta=-4.7750, alpha=2.0315)
        x = torch.baddbmm(x, b, x, beta=3.4445)
    return (x.mT if tall else x).float()
