"""The text model and the MTP head: one sequence at a time, float64 by default, no batching.

position arrays are [3, T] in the order (temporal, height, width); linear weights are [out, in];
the state S of the delta rule is [value heads, key dim, value dim].
"""
import math

import numpy as np

from .config import Config
from .delta_rule import conv_silu, delta_chunked, delta_recurrent
from .functions import mrope_tables, norm1p, norm_gated, rotate, sigmoid, silu, softmax, softplus
from .safetensors import load_checkpoint
from .vision_tower import VisionTower


class Cache:
    """Per-layer state: attention layers hold (k, v); DeltaNet layers hold (conv, S)."""

    def __init__(self, n):
        self.slot = [None] * n
        self.length = 0

    def copy(self):
        c = Cache(len(self.slot))
        c.slot = [None if s is None else tuple(a.copy() for a in s) for s in self.slot]
        c.length = self.length
        return c


class Model(VisionTower):
    def __init__(self, cfg, weights, dtype=np.float64, chunked=True):
        self.cfg, self.dtype, self.chunked = cfg, dtype, chunked
        self.w = {k: np.asarray(v, dtype) for k, v in weights.items()}
        self.root = "model.language_model." if "model.language_model.norm.weight" in self.w else "model."

    @staticmethod
    def load(directory, **kw):
        return Model(Config.load(directory), load_checkpoint(directory), **kw)

    # -- pieces ---------------------------------------------------------------------
    def W(self, name):
        return self.w[name]

    def lin(self, x, name):
        y = x @ self.w[name + ".weight"].T
        b = self.w.get(name + ".bias")
        return y if b is None else y + b

    def n1(self, x, name):
        return norm1p(x, self.w[name + ".weight"], self.cfg.eps)

    def head(self, h):
        emb = self.w[self.root + "embed_tokens.weight"]
        return h @ (emb if self.cfg.tied else self.w["lm_head.weight"]).T

    def embed(self, ids):
        return self.w[self.root + "embed_tokens.weight"][np.asarray(ids)]

    def delta_layer(self, x, p, slot, cap):
        c = self.cfg
        T = x.shape[0]
        conv, S = slot if slot is not None else (np.zeros((c.conv_k - 1, 2 * c.key_dim + c.val_dim), self.dtype), None)
        qkv = self.lin(x, p + "in_proj_qkv")
        z = self.lin(x, p + "in_proj_z")
        b = self.lin(x, p + "in_proj_b")
        a = self.lin(x, p + "in_proj_a")
        mixed, conv = conv_silu(qkv, self.w[p + "conv1d.weight"].reshape(-1, c.conv_k), conv)
        q = mixed[:, :c.key_dim].reshape(T, c.nk, c.dk)
        k = mixed[:, c.key_dim:2 * c.key_dim].reshape(T, c.nk, c.dk)
        v = mixed[:, 2 * c.key_dim:].reshape(T, c.nv, c.dv)
        beta = sigmoid(b)
        g = -np.exp(self.w[p + "A_log"]) * softplus(a + self.w[p + "dt_bias"])
        rule = delta_chunked if self.chunked and T > 1 else delta_recurrent
        o, S = rule(q, k, v, g, beta, S)
        y = norm_gated(o, z.reshape(T, c.nv, c.dv), self.w[p + "norm.weight"], c.eps)
        r = self.lin(y.reshape(T, -1), p + "out_proj")
        cap(p + "in_proj_qkv", qkv), cap(p + "conv_silu", mixed), cap(p + "z", z), cap(p + "beta", beta)
        cap(p + "g", g), cap(p + "delta_out", o), cap(p + "norm_out", y), cap(p + "out_proj", r)
        return r, (conv, S)

    def attn_layer(self, x, p, slot, pos, cap):
        c = self.cfg
        T = x.shape[0]
        qg = self.lin(x, p + "q_proj").reshape(T, c.heads, 2 * c.head_dim)
        q, gate = qg[..., :c.head_dim], qg[..., c.head_dim:]
        k = self.lin(x, p + "k_proj").reshape(T, c.kv_heads, c.head_dim)
        v = self.lin(x, p + "v_proj").reshape(T, c.kv_heads, c.head_dim)
        q, k = self.n1(q, p + "q_norm"), self.n1(k, p + "k_norm")
        cos, sin = mrope_tables(c, pos, self.dtype)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        cap(p + "q_rot", q), cap(p + "k_rot", k), cap(p + "v", v), cap(p + "gate", gate)
        past = 0
        if slot is not None:
            past = slot[0].shape[0]
            k, v = np.concatenate([slot[0], k]), np.concatenate([slot[1], v])
        rep = c.heads // c.kv_heads
        s = np.einsum("ihd,jhd->hij", q, np.repeat(k, rep, 1)) / math.sqrt(c.head_dim)
        s = np.where(np.arange(k.shape[0])[None, :] <= past + np.arange(T)[:, None], s, -np.inf)
        o = np.einsum("hij,jhd->ihd", softmax(s), np.repeat(v, rep, 1))
        cap(p + "attn", o)
        y = self.lin((o * sigmoid(gate)).reshape(T, -1), p + "o_proj")
        cap(p + "o_proj", y)
        return y, (k, v)

    def mlp(self, x, p):
        return self.lin(silu(self.lin(x, p + "gate_proj")) * self.lin(x, p + "up_proj"), p + "down_proj")

    def block(self, x, p, kind, slot, pos, cap):
        h = self.n1(x, p + "input_layernorm")
        if kind == "linear_attention":
            r, slot = self.delta_layer(h, p + "linear_attn.", slot, cap)
        else:
            r, slot = self.attn_layer(h, p + "self_attn.", slot, pos, cap)
        x = x + r
        x = x + self.mlp(self.n1(x, p + "post_attention_layernorm"), p + "mlp.")
        cap(p + "out", x)
        return x, slot

    # -- text forward ----------------------------------------------------------------
    def forward(self, ids=None, embeds=None, pos=None, cache=None, capture=None):
        """Returns the normalised hidden state [T,H] (the input of lm_head and of the MTP head)."""
        c = self.cfg
        x = self.embed(ids) if embeds is None else np.asarray(embeds, self.dtype)
        T = x.shape[0]
        cache = Cache(c.layers) if cache is None else cache
        if pos is None:
            pos = np.tile(np.arange(cache.length, cache.length + T), (3, 1))
        cap = (lambda n, a: None) if capture is None else (lambda n, a: capture.__setitem__(n, np.array(a)))
        cap("embeds", x)
        for i in range(c.layers):
            x, cache.slot[i] = self.block(x, f"{self.root}layers.{i}.", c.kinds[i], cache.slot[i], pos, cap)
        cache.length += T
        h = self.n1(x, self.root + "norm")
        cap("final_norm", h)
        return h, cache

    def greedy(self, ids, n, embeds=None, pos=None, delta=0):
        """n greedy tokens after the prompt.  delta: mRoPE offset of generated tokens after images."""
        h, cache = self.forward(ids=ids, embeds=embeds, pos=pos)
        toks, logits, hid = [], [], [h]
        for _ in range(n):
            lg = self.head(h[-1:])[0]
            logits.append(lg)
            toks.append(int(lg.argmax()))
            p = np.full((3, 1), cache.length + delta)
            h, cache = self.forward(ids=[toks[-1]], pos=p, cache=cache)
            hid.append(h)
        return toks, np.array(logits), np.concatenate(hid)

    # -- MTP head ----------------------------------------------------------------------
    def mtp(self, ids, hidden, pos, cache=None):
        """The draft head.  ids [T] are the tokens AFTER the positions of hidden [T,H]; returns hidden', cache."""
        e = self.n1(self.embed(ids), "mtp.pre_fc_norm_embedding")
        h = self.n1(np.asarray(hidden, self.dtype), "mtp.pre_fc_norm_hidden")
        x = self.lin(np.concatenate([e, h], -1), "mtp.fc")
        cache = Cache(self.cfg.mtp_layers) if cache is None else cache
        for i in range(self.cfg.mtp_layers):
            x, cache.slot[i] = self.block(x, f"mtp.layers.{i}.", "full_attention", cache.slot[i], pos, lambda n, a: None)
        cache.length += x.shape[0]
        return self.n1(x, "mtp.norm"), cache

    def draft(self, ids, next_id, hidden, pos, k):
        """k draft tokens after a prompt.  ids [T] prompt, next_id the token the model just chose,
        hidden [T,H] the normalised hidden states of the prompt, pos [3,T]."""
        shifted = list(ids[1:]) + [next_id]
        h, cache = self.mtp(shifted, hidden, pos)
        first = h
        h, p = h[-1:], pos[:, -1:]
        toks, logits = [], []
        for i in range(k):
            lg = self.head(h)[0]
            logits.append(lg)
            toks.append(int(lg.argmax()))
            if i + 1 < k:
                p = p + 1
                h, cache = self.mtp([toks[-1]], h, p, cache)
        return toks, np.array(logits), first
