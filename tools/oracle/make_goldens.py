"""Builds the goldens of tests/goldens that come from the NumPy oracle.

    python3 tools/oracle/make_goldens.py [--out DIR] [NAME ...]     names: tiny27 tiny08 tiny_odd units

Deterministic.  Weights are exact bfloat16 values with the real tensor names; every golden is
computed in float64 and stored as float32.  Prompts are searched for so that the greedy winners are
clear: a correct engine in bfloat16 keeps all tokens.
"""
import argparse
import json
import os

import numpy as np

from qwen3_5_oracle import geometry
from qwen3_5_oracle.config import Config
from qwen3_5_oracle.delta_rule import delta_chunked, delta_recurrent
from qwen3_5_oracle.functions import mrope_axis
from qwen3_5_oracle.model import Model
from qwen3_5_oracle.random_weights import random_weights
from qwen3_5_oracle.safetensors import (BF16, E4M3, F8, as_bf16, dequant_fp8_block, quant_fp8_block,
                                        write_safetensors)

ROPE = dict(mrope_interleaved=True, mrope_section=[11, 11, 10], partial_rotary_factor=0.25,
            rope_theta=10000000, rope_type="default")


def text_config(**kw):
    n = kw.get("num_hidden_layers", 4)
    t = dict(attention_bias=False, attn_output_gate=True, dtype="bfloat16", eos_token_id=1,
             full_attention_interval=4, head_dim=256, hidden_act="silu", hidden_size=64,
             intermediate_size=128,
             layer_types=["full_attention" if (i + 1) % 4 == 0 else "linear_attention" for i in range(n)],
             linear_conv_kernel_dim=4, linear_key_head_dim=128, linear_num_key_heads=2,
             linear_num_value_heads=2, linear_value_head_dim=128, mamba_ssm_dtype="float32",
             max_position_embeddings=4096, model_type="qwen3_5_text", mtp_num_hidden_layers=1,
             mtp_use_dedicated_embeddings=False, num_attention_heads=4, num_hidden_layers=n,
             num_key_value_heads=2, partial_rotary_factor=0.25, rms_norm_eps=1e-6,
             rope_parameters=ROPE, tie_word_embeddings=False, use_cache=True, vocab_size=256)
    t.update(kw)
    return t


def top_config(text, **kw):
    c = dict(architectures=["Qwen3_5ForConditionalGeneration"], model_type="qwen3_5",
             language_model_only=True, image_token_id=290, video_token_id=291,
             vision_start_token_id=288, vision_end_token_id=289,
             text_config=text, tie_word_embeddings=text["tie_word_embeddings"])
    c.update(kw)
    return c


def f32(d):
    return {k: np.ascontiguousarray(v, np.float32) for k, v in d.items()}


def write_json(path, value, indent=1):
    with open(path, "w") as f:
        json.dump(value, f, indent=indent)


def save_model(out, name, raw, seed, f32_state_params, sharpen):
    """sharpen: attention that depends on positions, by larger norm weights on the rotary channels.
    Without it random weights attend almost evenly, and a wrong rotation hardly shows."""
    d = os.path.join(out, name)
    os.makedirs(d, exist_ok=True)
    write_json(os.path.join(d, "config.json"), raw)
    weights = random_weights(raw, seed, f32_state_params)
    if sharpen:
        for n in weights:
            if n.endswith(("q_norm.weight", "k_norm.weight")):
                w = np.array(weights[n])
                w[:Config(raw).rot] += 1.0
                weights[n] = as_bf16(w)
    write_safetensors(os.path.join(d, "model.safetensors"), weights, {"format": "pt"})
    return Model.load(d), d


def margin(logits):
    s = np.sort(logits, -1)
    return (s[:, -1] - s[:, -2]).min()


def pick_prompt(model, length, steps, tries, seed):
    """The prompt whose greedy continuation is varied and has the clearest winners."""
    best = None
    for i in range(tries):
        ids = [int(t) for t in np.random.default_rng([seed, i]).integers(2, model.cfg.vocab, length)]
        toks, logits, _ = model.greedy(ids, steps)
        m = margin(logits) - (10 if len(set(toks)) * 2 < steps else 0)
        if best is None or m > best[0]:
            best = (m, ids, toks, logits)
    assert best[0] > 0, "no prompt with a varied continuation"
    return best


def layer_details(c, root, cap):
    """The inside of the first layer of each kind, first 9 tokens."""
    g = {}
    lin, att = c.kinds.index("linear_attention"), c.kinds.index("full_attention")
    for k in ("in_proj_qkv", "conv_silu", "z", "beta", "g", "delta_out", "norm_out", "out_proj"):
        g[f"detail.linear.{k}"] = cap[f"{root}layers.{lin}.linear_attn.{k}"][:9]
    for k in ("q_rot", "k_rot", "v", "gate", "attn", "o_proj"):
        g[f"detail.attention.{k}"] = cap[f"{root}layers.{att}.self_attn.{k}"][:9]
    return g, dict(linear_layer=lin, attention_layer=att, tokens=9)


def mtp_goldens(model, ids, next_id, h):
    """One pass of the MTP head over the prompt, then four draft tokens."""
    pos = np.tile(np.arange(len(ids)), (3, 1))
    drafts, logits, first = model.draft(ids, next_id, h, pos, 4)
    info = dict(prompt="long.prompt", next_token=next_id, drafts=drafts, min_top1_top2_margin=round(float(margin(logits)), 4))
    return {"mtp.hidden": first, "mtp.draft_logits": logits}, info


def text_goldens(out, name, raw, seed, f32_state_params, sharpen=False, detail=False, layers=True, long_tokens=150):
    model, d = save_model(out, name, raw, seed, f32_state_params, sharpen)
    c = model.cfg
    info = {"model": name, "seed": seed}
    g = {}

    m, ids, toks, logits = pick_prompt(model, 12, 24, 150, seed)
    info["short"] = dict(prompt=ids, greedy=toks, min_top1_top2_margin=round(float(m), 4))
    g["short.greedy_logits"] = logits

    # A long prompt: several chunks of 64, the last one short.
    m, ids, toks, logits = pick_prompt(model, long_tokens, 8, 20, seed + 1)
    cap = {}
    h, cache = model.forward(ids, capture=cap)
    info["long"] = dict(prompt=ids, greedy=toks, min_top1_top2_margin=round(float(m), 4))
    g["long.logits"], g["long.greedy_logits"] = model.head(h), logits
    if layers:
        g["long.embeds"], g["long.final_norm"] = cap["embeds"], h
        for i in range(c.layers):
            g[f"long.layer.{i}.out"] = cap[f"{model.root}layers.{i}.out"]
        lin = c.kinds.index("linear_attention")
        g[f"long.layer.{lin}.conv_state"], g[f"long.layer.{lin}.delta_state"] = cache.slot[lin]
    if detail:
        tensors, info["detail"] = layer_details(c, model.root, cap)
        g.update(tensors)
    if c.mtp_layers:
        tensors, info["mtp"] = mtp_goldens(model, ids, toks[0], h)
        g.update(tensors)
    write_safetensors(os.path.join(d, "golden.safetensors"), f32(g))
    write_json(os.path.join(d, "golden.json"), info)
    margins = {k: round(v["min_top1_top2_margin"], 3) for k, v in info.items()
               if isinstance(v, dict) and "min_top1_top2_margin" in v}
    print(name, margins, "logit std", round(float(g["long.logits"].std()), 2))


def delta_rule_golden(out, rng):
    """The gated delta rule alone: 1 key head, 2 value heads, 70 tokens, with an initial state."""
    T, nk, nv, d = 70, 1, 2, 128
    q, k = rng.standard_normal((2, T, nk, d))
    v = rng.standard_normal((T, nv, d))
    beta = rng.uniform(0, 1, (T, nv))
    gate = -np.exp(rng.uniform(-7, 2, (T, nv)))
    s0 = 0.3 * rng.standard_normal((nv, d, d))
    q, k, v, beta, gate, s0 = (np.float32(a).astype(np.float64) for a in (q, k, v, beta, gate, s0))
    o, s1 = delta_recurrent(q, k, v, gate, beta, s0)
    o2, s2 = delta_chunked(q, k, v, gate, beta, s0)
    assert abs(o - o2).max() < 1e-10 and abs(s1 - s2).max() < 1e-10
    write_safetensors(os.path.join(out, "delta_rule.safetensors"),
                      f32(dict(q=q, k=k, v=v, beta=beta, g=gate, state_in=s0, out=o, state_out=s1)))


def fp8_golden(out, rng):
    """A block-quantised linear with ragged blocks."""
    w = rng.standard_normal((136, 200)) * 0.05
    qw, sw = quant_fp8_block(w)
    x = np.float32(rng.standard_normal((5, 200)))
    deq = dequant_fp8_block(E4M3[qw], sw)
    y = (x.astype(np.float64) @ deq.T.astype(np.float64)).astype(np.float32)
    write_safetensors(os.path.join(out, "fp8_block.safetensors"),
                      {"linear.weight": qw.view(F8), "linear.weight_scale_inv": sw.view(BF16),
                       "dequantised": deq, "x": x, "y": y})


def geometry_golden(out):
    """Tables and sizes of the image and video path, with the real token ids."""
    real = Config({"text_config": {}, "vision_config": {}})
    img = [(480, 640), (1080, 1920), (100, 100), (10, 900), (33, 6000), (5000, 5000), (3000, 8000), (256, 256), (16, 16), (240, 240)]
    vid = [(16, 480, 640), (4, 1080, 1920), (100, 1080, 1920), (768, 720, 1280), (5, 20, 30), (8, 64, 64), (768, 40, 60)]
    IM, VI, VS, VE = real.image_id, real.video_id, real.vision_start_id, real.vision_end_id
    cases = []
    for label, ids, ig, vg in [
            ("text only", [1, 2, 3, 4], [], []),
            ("one image 4x6 merged 2x3", [1, 2, VS] + [IM] * 6 + [VE, 3, 4], [(1, 4, 6)], []),
            ("two images", [9, VS] + [IM] * 4 + [VE, VS] + [IM] * 8 + [VE, 5], [(1, 4, 4), (1, 2, 16)], []),
            ("video, 2 frame groups", [1, 7, VS] + [VI] * 6 + [VE, 8, VS] + [VI] * 6 + [VE, 2], [], [(2, 4, 6)])]:
        p, dlt = geometry.rope_positions(real, ids, ig, vg)
        cases.append(dict(label=label, ids=ids, image_grid_thw=ig, video_grid_thw=vg, positions=p.tolist(), delta=dlt))
    idx, wt = geometry.pos_embed_taps([(1, 4, 6)], 48, 2)
    geo = dict(
        mrope_axis_of_frequency=mrope_axis(real).tolist(),
        smart_resize_image=[dict(height=h, width=w, out=list(geometry.smart_resize_image(h, w))) for h, w in img],
        smart_resize_video=[dict(frames=f, height=h, width=w, out=list(geometry.smart_resize_video(f, h, w))) for f, h, w in vid],
        sample_frames=[dict(total=t, source_fps=s, fps=2.0, indices=geometry.sample_frames(t, s))
                       for t, s in [(90, 30.0), (10, 25.0), (3, 24.0), (241, 23.976), (59, 29.97)]],
        timestamps=[dict(indices=i, source_fps=s, out=geometry.frame_timestamps(i, s))
                    for i, s in [([0, 15, 30, 45], 30.0), ([0, 12, 24], 24.0)]],
        rope_positions=cases,
        pos_embed_taps=dict(grid=[1, 4, 6], table_side=48, merge=2, index=idx.tolist(), weight=wt.tolist()))
    write_json(os.path.join(out, "geometry.json"), geo, indent=None)


def units(out):
    rng = np.random.default_rng(7)
    delta_rule_golden(out, rng)
    fp8_golden(out, rng)
    geometry_golden(out)


def tiny27(out):
    raw = top_config(text_config(linear_num_value_heads=6))
    text_goldens(out, "tiny27", raw, 101, f32_state_params=False, detail=True)


def tiny08(out):
    raw = top_config(text_config(num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True))
    text_goldens(out, "tiny08", raw, 202, f32_state_params=True)


def tiny_odd(out):
    """Nothing is a power of two: K of the products is 96 and 160 (no multiple of 128, so they are not
    cut into slices), 3 heads on 1 KV head, a layer list that no interval describes, no MTP."""
    kinds = ["linear_attention", "full_attention", "full_attention", "linear_attention"]
    raw = top_config(text_config(hidden_size=96, intermediate_size=160, layer_types=kinds, vocab_size=320,
                                 num_attention_heads=3, num_key_value_heads=1, linear_num_value_heads=4,
                                 tie_word_embeddings=True, mtp_num_hidden_layers=0))
    del raw["text_config"]["full_attention_interval"]
    text_goldens(out, "tiny_odd", raw, 404, f32_state_params=True, sharpen=True, layers=False, long_tokens=200)


GOLDENS = dict(tiny27=tiny27, tiny08=tiny08, tiny_odd=tiny_odd, units=units)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", default=os.path.join(here, "..", "..", "tests", "goldens"))
    ap.add_argument("names", nargs="*", default=list(GOLDENS), metavar="NAME")
    args = ap.parse_args()
    unknown = [n for n in args.names if n not in GOLDENS]
    if unknown:
        ap.error(f"unknown golden {unknown[0]}, want one of {', '.join(GOLDENS)}")
    os.makedirs(args.out, exist_ok=True)
    for n in args.names:
        GOLDENS[n](args.out)


if __name__ == "__main__":
    main()
