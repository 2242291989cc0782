"""Greedy answers and drafts of a trained model, one sequence at a time, with caches.

    model = load("models/tiny")
    model.greedy(ids, images, 64)        token ids, the end of turn included
    model.accepted(ids, images, 64)      drafts accepted, over the steps that made two drafts

The prompt goes through the AMX pieces where there are any, in chunks; single tokens in float32.
"""
import json
import os

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

import config
import native
import reference
from batches import positions_of
from config import text as c
from model import EMBED, FINAL_NORM, MTP, attention_layer, embed, layers, mtp_input, rotary_tables

CHUNK = 2048
DRAFTS = 2


def load(directory, exact=False):
    """exact: everything in float32."""
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as f:
        assert json.load(f) == json.loads(json.dumps(config.CONFIG)), "another architecture"
    w = load_file(os.path.join(directory, "model.safetensors"))
    return Generator({name: tensor.float() for name, tensor in w.items()}, exact)


class DeltaSlot:
    def __init__(self):
        self.before = torch.zeros(1, c.linear_conv_kernel_dim - 1, config.MIX_WIDTH)
        self.state = torch.zeros(1, c.linear_num_value_heads, c.linear_key_head_dim, c.linear_value_head_dim)


class AttentionSlot:
    def __init__(self):
        self.k, self.v = torch.zeros(1, 0, c.head_dim), torch.zeros(1, 0, c.head_dim)
        self.length = 0

    def append(self, k, v):
        end = self.length + k.shape[1]
        if end > self.k.shape[1]:
            more = max(1024, end)
            more += -more % 64
            self.k, self.v = (F.pad(x, (0, 0, 0, more)) for x in (self.k, self.v))
        self.k[:, self.length:end], self.v[:, self.length:end] = k, v
        self.length = end


class Cached:
    """The pieces `ops`, going on from the slots of the layers, which are met in their order."""

    def __init__(self, ops, slots):
        self.ops, self.slots = ops, iter(slots)

    def __getattr__(self, name):
        return getattr(self.ops, name)

    def delta_core(self, p, *weights):
        slot = next(self.slots)
        before = slot.before.to(p.dtype)
        if self.ops is native:
            before = before[..., native.MIX_ROWS].contiguous()
        y = self.ops.delta_core(p, *weights, before, slot.state)
        u = torch.cat([before, self.ops.delta_inputs(p)], 1)[:, -before.shape[1]:].float()
        slot.before = u[..., native.MIX_ROWS.argsort()] if self.ops is native else u
        return y

    def attention(self, q, k, v, at):
        slot = next(self.slots)
        at = at + slot.length
        slot.append(k, v)
        keys = slot.length + (-slot.length % 64 if q.dtype != torch.float32 else 0)
        return self.ops.attention(q, slot.k[:, :keys].to(q.dtype), slot.v[:, :keys].to(q.dtype), at)


class Generator:
    def __init__(self, w, exact):
        self.w = w
        self.fast = not exact and native.available()

    def greedy(self, ids, images, max_tokens):
        return self.run(ids, images, max_tokens)[0]

    @torch.no_grad()
    def run(self, ids, images, max_tokens):
        """Tokens; and for the drafts the inputs, normed hidden states and positions of all columns but the last."""
        ids = torch.as_tensor(ids, dtype=torch.long)
        positions = torch.from_numpy(positions_of(ids.numpy(), images))
        x = embed(self.w, ids[None], images)
        slots = [DeltaSlot() if kind == "linear_attention" else AttentionSlot() for kind in c.layer_types]
        h, made, inputs, hidden = self.forward(x, positions, slots), [], [x], []
        position = positions.max().item()
        while True:
            hidden.append(h)
            made.append(self.best(h[:, -1]))
            if len(made) == max_tokens or made[-1] in (config.END_OF_TURN, config.END_OF_TEXT):
                break
            position += 1
            inputs.append(self.w[EMBED][made[-1]][None, None])
            positions = torch.cat([positions, torch.full((1, 3), position)])
            h = self.forward(inputs[-1], positions[-1:], slots)
        return made, torch.cat(inputs, 1), torch.cat(hidden, 1), positions

    def forward(self, x, positions, slots):
        """Normed hidden states of the columns of x."""
        return torch.cat([reference.norm(layers(Cached(ops, slots), self.w, part, turns), self.w[FINAL_NORM])
                          for ops, part, turns in self.chunks(x, positions)], 1)

    def chunks(self, x, positions):
        cos, sin = rotary_tables(positions[None])
        T = x.shape[1]
        fast = T - T % 64 if self.fast else 0
        borders = [*range(0, fast, CHUNK), *range(fast, T, CHUNK), T]
        for start, end in zip(borders, borders[1:]):
            yield (native if start < fast else reference), x[:, start:end], (cos[:, start:end], sin[:, start:end])

    def best(self, h):
        return (h @ self.w[EMBED].T)[0, :config.REAL_IDS].argmax().item()

    @torch.no_grad()
    def accepted(self, ids, images, max_tokens):
        """(drafts accepted, steps): each step drafts two tokens after the chosen one and keeps those that are right."""
        made, inputs, hidden, positions = self.run(ids, images, max_tokens)
        chosen = list(ids) + made
        prompt, slot = len(ids), AttentionSlot()
        at, done, total, steps = prompt, 0, 0, 0  # chosen[at] is the newest token
        while at + DRAFTS < len(chosen):
            after = torch.cat([inputs[:, done + 1:at], self.w[EMBED][chosen[at]][None, None]], 1)
            h = self.mtp(after, hidden[:, done:at], positions[done:at], slot)[:, -1:]
            done, position, right = at, positions[at - 1:at], 0
            for draft in range(DRAFTS):
                token = self.best(self.logit_input(h)[:, -1])
                right += right == draft and token == chosen[at + 1 + draft]
                position = position + 1
                h = self.mtp(self.w[EMBED][token][None, None], self.logit_input(h), position, slot)
            slot.length = done
            total, steps, at = total + right, steps + 1, at + right + 1
        return total, steps

    def mtp(self, e, h, positions, slot):
        out = []
        first = 0
        for ops, part, turns in self.chunks(e, positions):
            x = mtp_input(ops, self.w, part, h[:, first:first + part.shape[1]].contiguous())
            out.append(attention_layer(Cached(ops, [slot]), self.w, MTP, x, turns))
            first += part.shape[1]
        return torch.cat(out, 1)

    def logit_input(self, x):
        return reference.norm(x, self.w["mtp.norm.weight"])
