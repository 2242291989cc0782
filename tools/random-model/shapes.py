"""The released sizes of the family, and every tensor of a checkpoint: name, shape, dtype, filling.

A tensor's filling says how its values are drawn: ("matrix", gain) is normal with deviation
gain / sqrt(inputs); the others are small vectors.  Sources of the sizes: the public config.json
files; with MTP and vision the byte totals equal those of the published index files (tests/model/test_random_model.py).
"""
from typing import NamedTuple

ROPE = dict(mrope_interleaved=True, mrope_section=[11, 11, 10], partial_rotary_factor=0.25,
            rope_theta=10000000, rope_type="default")


def _text(hidden, inter, layers, heads, kv_heads, value_heads, tied):
    return dict(hidden_size=hidden, intermediate_size=inter, num_hidden_layers=layers, num_attention_heads=heads,
                num_key_value_heads=kv_heads, linear_num_value_heads=value_heads, tie_word_embeddings=tied)


def _vision(depth, hidden, heads, inter):
    return dict(depth=depth, hidden_size=hidden, num_heads=heads, intermediate_size=inter)


# name -> text sizes, vision sizes, dtype of A_log and linear_attn.norm
PRESETS = {
    "0.8b": (_text(1024, 3584, 24, 8, 2, 16, True), _vision(12, 768, 12, 3072), "F32"),
    "2b": (_text(2048, 6144, 24, 8, 2, 16, True), _vision(24, 1024, 16, 4096), "F32"),
    "4b": (_text(2560, 9216, 32, 16, 4, 32, True), _vision(24, 1024, 16, 4096), "F32"),
    "9b": (_text(4096, 12288, 32, 16, 4, 32, False), _vision(27, 1152, 16, 4304), "F32"),
    "27b": (_text(5120, 17408, 64, 24, 4, 48, False), _vision(27, 1152, 16, 4304), "BF16"),
}


class Tensor(NamedTuple):
    name: str
    shape: tuple
    dtype: str  # BF16 or F32
    fill: tuple


def make_config(preset, overrides, mtp, vision):
    """config.json as a dict.  overrides: fields of text_config."""
    sizes, vision_sizes, _ = PRESETS[preset]
    text = dict(model_type="qwen3_5_text", vocab_size=248320, **sizes, head_dim=256, hidden_act="silu",
                linear_num_key_heads=16, linear_key_head_dim=128, linear_value_head_dim=128,
                linear_conv_kernel_dim=4, mamba_ssm_dtype="float32", attention_bias=False, attn_output_gate=True,
                full_attention_interval=4, rms_norm_eps=1e-6, rope_parameters=ROPE, max_position_embeddings=262144,
                mtp_num_hidden_layers=int(mtp), mtp_use_dedicated_embeddings=False, eos_token_id=248044,
                dtype="bfloat16", use_cache=True)
    unknown = set(overrides) - set(text)
    if unknown:
        raise ValueError(f"unknown field {sorted(unknown)[0]}, want one of {', '.join(sorted(text))}")
    text.update(overrides)
    every = text["full_attention_interval"]
    text["layer_types"] = ["linear_attention" if (i + 1) % every else "full_attention"
                           for i in range(text["num_hidden_layers"])]
    config = dict(architectures=["Qwen3_5ForConditionalGeneration"], model_type="qwen3_5",
                  language_model_only=not vision, image_token_id=248056, video_token_id=248057,
                  vision_start_token_id=248053, vision_end_token_id=248054, text_config=text,
                  tie_word_embeddings=text["tie_word_embeddings"])
    if vision:
        config["vision_config"] = dict(
            model_type="qwen3_5", **vision_sizes, out_hidden_size=text["hidden_size"], in_channels=3, patch_size=16,
            temporal_patch_size=2, spatial_merge_size=2, num_position_embeddings=2304,
            hidden_act="gelu_pytorch_tanh", deepstack_visual_indexes=[])
    return config


def list_tensors(config, state_dtype):
    """All tensors, in layer order."""
    t = config["text_config"]
    H, root = t["hidden_size"], "model.language_model."
    out = [_matrix(root + "embed_tokens.weight", t["vocab_size"], H, fill=("embedding", t["tie_word_embeddings"]))]
    for i, kind in enumerate(t["layer_types"]):
        p = f"{root}layers.{i}."
        out += _linear_layer(p + "linear_attn.", t, state_dtype) if kind == "linear_attention" else _full_layer(p + "self_attn.", t)
        out += _common(p, t)
    out.append(Tensor(root + "norm.weight", (H,), "BF16", ("normal", 0.5, 0.2)))
    if not t["tie_word_embeddings"]:
        out.append(_matrix("lm_head.weight", t["vocab_size"], H, 2.0))
    for i in range(t["mtp_num_hidden_layers"]):
        out += _common(f"mtp.layers.{i}.", t) + _full_layer(f"mtp.layers.{i}.self_attn.", t)
    if t["mtp_num_hidden_layers"]:
        out.append(_matrix("mtp.fc.weight", H, 2 * H, 1.4))
        out += [Tensor(f"mtp.{n}.weight", (H,), "BF16", ("normal", 0.2, 0.2))
                for n in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden")]
    if "vision_config" in config:
        out += _vision_tower("model.visual.", config["vision_config"])
    return out


def byte_count(tensor):
    n = 2 if tensor.dtype == "BF16" else 4
    for d in tensor.shape:
        n *= d
    return n


def _matrix(name, rows, cols, gain=1.0, fill=None):
    return Tensor(name, (rows, cols), "BF16", fill or ("matrix", gain))


def _common(p, t):
    H, inter = t["hidden_size"], t["intermediate_size"]
    norms = [Tensor(f"{p}{n}.weight", (H,), "BF16", ("normal", 0.0, 0.2))
             for n in ("input_layernorm", "post_attention_layernorm")]
    return norms + [_matrix(p + "mlp.gate_proj.weight", inter, H), _matrix(p + "mlp.up_proj.weight", inter, H),
                    _matrix(p + "mlp.down_proj.weight", H, inter)]


def _full_layer(p, t):
    H, d = t["hidden_size"], t["head_dim"]
    A, KV = t["num_attention_heads"] * d, t["num_key_value_heads"] * d
    return [_matrix(p + "q_proj.weight", 2 * A, H), _matrix(p + "k_proj.weight", KV, H),
            _matrix(p + "v_proj.weight", KV, H), _matrix(p + "o_proj.weight", H, A),
            Tensor(p + "q_norm.weight", (d,), "BF16", ("normal", 0.2, 0.2)),
            Tensor(p + "k_norm.weight", (d,), "BF16", ("normal", 0.2, 0.2))]


def _linear_layer(p, t, state_dtype):
    H, nv, dv = t["hidden_size"], t["linear_num_value_heads"], t["linear_value_head_dim"]
    K, V = t["linear_num_key_heads"] * t["linear_key_head_dim"], nv * dv
    return [_matrix(p + "in_proj_qkv.weight", 2 * K + V, H, fill=("qkv", K)), _matrix(p + "in_proj_z.weight", V, H),
            _matrix(p + "in_proj_b.weight", nv, H), _matrix(p + "in_proj_a.weight", nv, H),
            Tensor(p + "conv1d.weight", (2 * K + V, 1, t["linear_conv_kernel_dim"]), "BF16", ("conv",)),
            Tensor(p + "A_log", (nv,), state_dtype, ("a_log",)), Tensor(p + "dt_bias", (nv,), "BF16", ("dt_bias",)),
            Tensor(p + "norm.weight", (dv,), state_dtype, ("normal", 1.0, 0.2)),
            _matrix(p + "out_proj.weight", H, V)]


def _vision_tower(p, v):
    D, M, merged = v["hidden_size"], v["intermediate_size"], v["hidden_size"] * v["spatial_merge_size"] ** 2

    def linear(name, rows, cols):
        return [_matrix(name + ".weight", rows, cols), Tensor(name + ".bias", (rows,), "BF16", ("normal", 0.0, 0.1))]

    def norm(name):
        return [Tensor(name + ".weight", (D,), "BF16", ("normal", 1.0, 0.1)),
                Tensor(name + ".bias", (D,), "BF16", ("normal", 0.0, 0.1))]

    patch = (D, v["in_channels"], v["temporal_patch_size"], v["patch_size"], v["patch_size"])
    out = [Tensor(p + "patch_embed.proj.weight", patch, "BF16", ("matrix", 2.0)),
           Tensor(p + "patch_embed.proj.bias", (D,), "BF16", ("normal", 0.0, 0.1)),
           _matrix(p + "pos_embed.weight", v["num_position_embeddings"], D)]
    for i in range(v["depth"]):
        b = f"{p}blocks.{i}."
        out += norm(b + "norm1") + norm(b + "norm2")
        out += linear(b + "attn.qkv", 3 * D, D) + linear(b + "attn.proj", D, D)
        out += linear(b + "mlp.linear_fc1", M, D) + linear(b + "mlp.linear_fc2", D, M)
    out += norm(p + "merger.norm") + linear(p + "merger.linear_fc1", merged, merged)
    return out + linear(p + "merger.linear_fc2", v["out_hidden_size"], merged)
