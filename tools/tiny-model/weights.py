"""The tensors of the model by their names in the file: shapes and initial values.

Matrices that write to the residual stream start at zero, all others with rows of length about one. The
embeddings are large enough not to drown in what the layers soon add; the norms before the (tied) head
start small in turn, or every token would predict itself.
"""
import math

import torch

import config
from config import text as c, vision as v

H, I = c.hidden_size, c.intermediate_size  # noqa: E741
KV_WIDTH = c.num_key_value_heads * c.head_dim
RESIDUAL = ("out_proj.weight", "o_proj.weight", "down_proj.weight", "attn.proj.weight", "mlp.linear_fc2.weight")
EMBEDDING_SPREAD = 0.3
HEAD_NORMS, HEAD_NORM = ("language_model.norm.weight", "mtp.norm.weight"), 0.125 - 1
LONGEST_MEMORY, SHORTEST_MEMORY = 4096, 4  # tokens after which a head has forgotten most, at the start


def shapes():
    """Name -> shape, in the order of the layers."""
    out = {"model.language_model.embed_tokens.weight": (c.vocab_size, H)}
    for i, kind in enumerate(c.layer_types):
        out |= text_layer(f"model.language_model.layers.{i}.", kind)
    out["model.language_model.norm.weight"] = (H,)
    out |= {f"mtp.{n}.weight": (H,) for n in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")}
    out["mtp.fc.weight"] = (H, 2 * H)
    out |= text_layer("mtp.layers.0.", "full_attention")
    return out | vision_tower("model.visual.")


def text_layer(p, kind):
    out = {p + "input_layernorm.weight": (H,), p + "post_attention_layernorm.weight": (H,),
           p + "mlp.gate_proj.weight": (I, H), p + "mlp.up_proj.weight": (I, H), p + "mlp.down_proj.weight": (H, I)}
    if kind == "full_attention":
        a = p + "self_attn."
        return out | {a + "q_proj.weight": (2 * config.QUERY_WIDTH, H), a + "k_proj.weight": (KV_WIDTH, H),
                      a + "v_proj.weight": (KV_WIDTH, H), a + "o_proj.weight": (H, config.QUERY_WIDTH),
                      a + "q_norm.weight": (c.head_dim,), a + "k_norm.weight": (c.head_dim,)}
    a, heads = p + "linear_attn.", c.linear_num_value_heads
    return out | {a + "in_proj_qkv.weight": (config.MIX_WIDTH, H), a + "in_proj_z.weight": (config.VALUE_WIDTH, H),
                  a + "in_proj_b.weight": (heads, H), a + "in_proj_a.weight": (heads, H),
                  a + "conv1d.weight": (config.MIX_WIDTH, 1, c.linear_conv_kernel_dim), a + "A_log": (heads,),
                  a + "dt_bias": (heads,), a + "norm.weight": (c.linear_value_head_dim,),
                  a + "out_proj.weight": (H, config.VALUE_WIDTH)}


def vision_tower(p):
    D, M, merged = v.hidden_size, v.intermediate_size, v.hidden_size * v.spatial_merge_size ** 2
    out = {p + "patch_embed.proj.weight": (D, v.in_channels, v.temporal_patch_size, v.patch_size, v.patch_size),
           p + "patch_embed.proj.bias": (D,), p + "pos_embed.weight": (v.num_position_embeddings, D)}

    def linear(name, rows, columns):
        out.update({name + ".weight": (rows, columns), name + ".bias": (rows,)})

    def norm(name):
        out.update({name + ".weight": (D,), name + ".bias": (D,)})

    for j in range(v.depth):
        b = f"{p}blocks.{j}."
        norm(b + "norm1"), norm(b + "norm2")
        linear(b + "attn.qkv", 3 * D, D), linear(b + "attn.proj", D, D)
        linear(b + "mlp.linear_fc1", M, D), linear(b + "mlp.linear_fc2", D, M)
    norm(p + "merger.norm")
    linear(p + "merger.linear_fc1", merged, merged), linear(p + "merger.linear_fc2", v.out_hidden_size, merged)
    return out


def initial_weights(seed):
    generator = torch.Generator().manual_seed(seed)
    return {name: initial(name, shape, generator) for name, shape in shapes().items()}


def initial(name, shape, generator):
    def normal(spread):
        return torch.randn(shape, generator=generator) * spread

    if name.endswith("embed_tokens.weight"):
        return normal(EMBEDDING_SPREAD)
    if name.endswith("pos_embed.weight"):
        return normal(0.02)
    if name.endswith("conv1d.weight"):
        w = normal(0.2)
        w[:, 0, -1] += 0.7
        return w
    if name.endswith("A_log"):
        return torch.zeros(shape)
    if name.endswith("dt_bias"):
        memory = torch.logspace(math.log10(SHORTEST_MEMORY), math.log10(LONGEST_MEMORY), shape[0])
        return (1 / memory).expm1().log()  # the inverse of softplus
    if name.endswith(HEAD_NORMS):
        return torch.full(shape, HEAD_NORM)
    if len(shape) == 1:
        layer_norm = "visual" in name and "norm" in name or "linear_attn.norm" in name
        return torch.ones(shape) if layer_norm and name.endswith("weight") else torch.zeros(shape)
    if name.endswith(RESIDUAL):
        return torch.zeros(shape)
    return normal(1 / math.sqrt(math.prod(shape[1:])))
