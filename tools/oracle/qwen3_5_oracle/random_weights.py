"""Random weights with the checkpoint's tensor names, scaled so that activations stay in range."""
import math

import numpy as np

from .config import Config
from .safetensors import BF16, as_bf16, bf16


def random_weights(raw, seed=0, f32_state_params=True, prefix="model.language_model."):
    """A random model for config dict `raw`.  All values are exactly representable in BF16."""
    c = Config(raw)
    rng = np.random.default_rng(seed)
    w = {}

    def mat(name, out, inp, gain=1.0):
        w[name] = as_bf16(rng.standard_normal((out, inp)) * gain / math.sqrt(inp))

    def vec(name, n, mean, sd):
        w[name] = as_bf16(mean + sd * rng.standard_normal(n))

    def attn(p):
        mat(p + "q_proj.weight", c.heads * 2 * c.head_dim, c.hidden)
        mat(p + "k_proj.weight", c.kv_heads * c.head_dim, c.hidden)
        mat(p + "v_proj.weight", c.kv_heads * c.head_dim, c.hidden)
        mat(p + "o_proj.weight", c.hidden, c.heads * c.head_dim)
        vec(p + "q_norm.weight", c.head_dim, 0.2, 0.2)
        vec(p + "k_norm.weight", c.head_dim, 0.2, 0.2)

    def common(p):
        vec(p + "input_layernorm.weight", c.hidden, 0.0, 0.2)
        vec(p + "post_attention_layernorm.weight", c.hidden, 0.0, 0.2)
        mat(p + "mlp.gate_proj.weight", c.inter, c.hidden)
        mat(p + "mlp.up_proj.weight", c.inter, c.hidden)
        mat(p + "mlp.down_proj.weight", c.hidden, c.inter)

    w[prefix + "embed_tokens.weight"] = as_bf16(rng.standard_normal((c.vocab, c.hidden)) * (2 / math.sqrt(c.hidden) if c.tied else 1.0))
    for i in range(c.layers):
        p = f"{prefix}layers.{i}."
        common(p)
        if c.kinds[i] == "full_attention":
            attn(p + "self_attn.")
            continue
        q = p + "linear_attn."
        # keys share most of their direction with the queries, as trained models do: otherwise q.k of a
        # first token is near zero, the gated norm blows up its sign, and low precision becomes chaotic
        m = rng.standard_normal((2 * c.key_dim + c.val_dim, c.hidden)) / math.sqrt(c.hidden)
        m[c.key_dim:2 * c.key_dim] = 0.8 * m[:c.key_dim] + 0.6 * m[c.key_dim:2 * c.key_dim]
        w[q + "in_proj_qkv.weight"] = as_bf16(m)
        mat(q + "in_proj_z.weight", c.val_dim, c.hidden)
        mat(q + "in_proj_b.weight", c.nv, c.hidden)
        mat(q + "in_proj_a.weight", c.nv, c.hidden)
        conv = rng.standard_normal((2 * c.key_dim + c.val_dim, 1, c.conv_k)) * 0.3
        conv[:, :, -1] += 1.0
        w[q + "conv1d.weight"] = as_bf16(conv)
        a_log = bf16(rng.uniform(math.log(0.02), math.log(8.0), c.nv))
        w[q + "A_log"] = a_log if f32_state_params else a_log.view(BF16)
        w[q + "dt_bias"] = as_bf16(rng.uniform(-4.0, 1.0, c.nv))
        nw = bf16(1.0 + 0.2 * rng.standard_normal(c.dv))
        w[q + "norm.weight"] = nw if f32_state_params else nw.view(BF16)
        mat(q + "out_proj.weight", c.hidden, c.val_dim)
    vec(prefix + "norm.weight", c.hidden, 0.5, 0.2)
    if not c.tied:
        mat("lm_head.weight", c.vocab, c.hidden, 2.0)
    if c.mtp_layers:
        mat("mtp.fc.weight", c.hidden, 2 * c.hidden, 1.4)
        for n in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
            vec(f"mtp.{n}.weight", c.hidden, 0.2, 0.2)
        for i in range(c.mtp_layers):
            common(f"mtp.layers.{i}.")
            attn(f"mtp.layers.{i}.self_attn.")
    if c.vision:
        v, p = c.vision, "model.visual."

        def full(name, out, inp):
            mat(name + ".weight", out, inp)
            vec(name + ".bias", out, 0.0, 0.1)

        def ln(name):
            vec(name + ".weight", v["hidden"], 1.0, 0.1)
            vec(name + ".bias", v["hidden"], 0.0, 0.1)

        n_in = v["chans"] * v["tpatch"] * v["patch"] ** 2
        k = rng.standard_normal((v["hidden"], n_in)) / math.sqrt(n_in) * 2
        w[p + "patch_embed.proj.weight"] = as_bf16(k.reshape(v["hidden"], v["chans"], v["tpatch"], v["patch"], v["patch"]))
        vec(p + "patch_embed.proj.bias", v["hidden"], 0.0, 0.1)
        w[p + "pos_embed.weight"] = as_bf16(rng.standard_normal((v["npos"], v["hidden"])) * 0.5)
        for i in range(v["depth"]):
            b = f"{p}blocks.{i}."
            ln(b + "norm1"), ln(b + "norm2")
            full(b + "attn.qkv", 3 * v["hidden"], v["hidden"])
            full(b + "attn.proj", v["hidden"], v["hidden"])
            full(b + "mlp.linear_fc1", v["inter"], v["hidden"])
            full(b + "mlp.linear_fc2", v["hidden"], v["inter"])
        ln(p + "merger.norm")
        m = v["hidden"] * v["merge"] ** 2
        full(p + "merger.linear_fc1", m, m)
        full(p + "merger.linear_fc2", v["out"], m)
    return w


def plain(weights):
    """Drop the storage markers, keep the values."""
    return {k: np.asarray(v, np.float32) for k, v in weights.items()}
