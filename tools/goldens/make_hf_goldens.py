"""Builds the goldens of tests/goldens that come from Hugging Face transformers.

    python3 tools/goldens/make_hf_goldens.py [--out DIR] [NAME ...]     names: hf_nested hf_flat

Two tiny checkpoints are made with transformers' own config and model classes and written with
save_pretrained; then transformers reads them back in float32 and says what the logits and greedy
tokens are.  The weights come from NumPy's generator (by parameter name), so that they do not depend
on the torch version.  Packages: requirements.txt beside this file; CPU only, no network.
"""
import argparse
import json
import math
import os
import zlib

os.environ["HF_HUB_OFFLINE"] = "1"  # transformers may look for optional kernels; never here

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from transformers import (AutoModelForCausalLM, AutoModelForImageTextToText, Qwen3_5Config,
                          Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration, Qwen3_5TextConfig)

ROPE = dict(rope_type="default", rope_theta=10000000, partial_rotary_factor=0.25,
            mrope_section=[11, 11, 10], mrope_interleaved=True)

# Tokens before the greedy ones; the long prompt spans several chunks of 32 and 64, the last short.
SHORT_TOKENS, LONG_TOKENS = 12, 150
SHORT_STEPS, LONG_STEPS = 24, 8
PROMPTS_TRIED = 96
PLACEHOLDERS = 248


def random_value(name, shape, seed):
    """The values of one parameter, float64.  Scaled as the oracle does: activations stay in range,
    and keys share most of their direction with the queries (as in trained models), because else
    the gated norm amplifies the sign of a near-zero q.k and low precision turns into chaos."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    draw = rng.standard_normal(shape)
    if name.endswith("A_log"):
        return rng.uniform(math.log(0.02), math.log(8.0), shape)
    if name.endswith("dt_bias"):
        return rng.uniform(-4.0, 1.0, shape)
    if name.endswith(".bias"):
        return 0.1 * draw
    if len(shape) == 1:  # norm weights: plain ones around 1, those of the (1 + w) norms around 0
        plain = name.endswith("linear_attn.norm.weight") or ".visual." in name
        value = (1.0 if plain else 0.2) + 0.2 * draw
        if name.endswith(("q_norm.weight", "k_norm.weight")):
            value[:64] += 1.0  # the rotary channels: else attention is even and positions hardly show
        return value
    if name.endswith("conv1d.weight"):
        draw *= 0.3
        draw[..., -1] += 1.0
        return draw
    if name.endswith("embed_tokens.weight"):
        return draw * 2 / math.sqrt(shape[1])
    value = draw / math.sqrt(math.prod(shape[1:]))
    if name.endswith("lm_head.weight"):
        return 2.0 * value
    return value


def fill(model, key_size, seed):
    """Overwrites every parameter with bfloat16-representable random values."""
    tied = model.config.get_text_config().tie_word_embeddings
    with torch.no_grad():
        for name, p in model.named_parameters():
            if tied and name.endswith("lm_head.weight"):
                continue
            v = random_value(name, tuple(p.shape), seed)
            if name.endswith("in_proj_qkv.weight"):
                v[key_size:2 * key_size] = 0.8 * v[:key_size] + 0.6 * v[key_size:2 * key_size]
            p.copy_(torch.from_numpy(v).to(torch.bfloat16).to(p.dtype))


def text_config(**kw):
    base = dict(hidden_size=64, intermediate_size=128, head_dim=256, linear_key_head_dim=128,
                linear_value_head_dim=128, linear_conv_kernel_dim=4, max_position_embeddings=4096,
                rms_norm_eps=1e-6, rope_parameters=dict(ROPE), eos_token_id=1, dtype="bfloat16")
    return {**base, **kw}


def build_nested(seed):
    """The layout of the releases: nested config, vision tower present, untied head, 3 value heads
    per key head, all tensors bfloat16."""
    text = text_config(vocab_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
                       linear_num_key_heads=2, linear_num_value_heads=6, tie_word_embeddings=False)
    vision = dict(depth=1, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=64,
                  num_position_embeddings=16, patch_size=16)
    config = Qwen3_5Config(text_config=text, vision_config=vision, tie_word_embeddings=False,
                           image_token_id=PLACEHOLDERS, video_token_id=PLACEHOLDERS + 1,
                           vision_start_token_id=PLACEHOLDERS + 2, vision_end_token_id=PLACEHOLDERS + 3, dtype="bfloat16")
    model = Qwen3_5ForConditionalGeneration(config)
    fill(model, 2 * 128, seed)
    return model.to(torch.bfloat16), AutoModelForImageTextToText


def build_flat(seed):
    """A text-only re-export: flat config, tensors under "model.", tied head, as many value heads as
    key heads, five layers (the last one linear), A_log and the DeltaNet norm in float32, a
    vocabulary that is no multiple of anything."""
    text = text_config(vocab_size=250, intermediate_size=96, num_hidden_layers=5, num_attention_heads=2,
                       num_key_value_heads=2, linear_num_key_heads=2, linear_num_value_heads=2,
                       tie_word_embeddings=True)
    model = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**text))
    fill(model, 2 * 128, seed)
    for name, p in model.named_parameters():
        if not name.endswith(("A_log", "linear_attn.norm.weight")):
            p.data = p.data.to(torch.bfloat16)
    return model, AutoModelForCausalLM


def greedy(model, prompts, steps):
    """Tokens [B, steps] and the logits [B, steps, vocab] they were taken from, with the cache."""
    ids, cache, tokens, logits = torch.tensor(prompts), None, [], []
    for _ in range(steps):
        out = model(input_ids=ids, cache=cache, use_cache=True)
        cache = out.past_key_values
        logits.append(out.logits[:, -1])
        ids = logits[-1].argmax(-1, keepdim=True)
        tokens.append(ids)
    return torch.cat(tokens, 1).numpy(), torch.stack(logits, 1).numpy()


def pick_prompt(model, length, steps, seed):
    """Of PROMPTS_TRIED random prompts the one whose greedy winners are clearest, varied and free of
    the ids from PLACEHOLDERS on, which may stand for images."""
    prompts = np.random.default_rng([seed, length]).integers(2, PLACEHOLDERS, (PROMPTS_TRIED, length))
    tokens, logits = greedy(model, prompts, steps)
    top = np.sort(logits, -1)
    margins = (top[..., -1] - top[..., -2]).min(-1)
    good = np.array([2 * len(set(t)) >= steps and t.max() < PLACEHOLDERS for t in tokens])
    assert good.any(), "no prompt with a varied continuation"
    best = int(np.where(good, margins, -1).argmax())
    return prompts[best].tolist()


def golden_of(model, length, steps, seed):
    prompt = pick_prompt(model, length, steps, seed)
    tokens, greedy_logits = greedy(model, [prompt], steps)
    own = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, length, dtype=torch.long),
                         max_new_tokens=steps, min_new_tokens=steps, do_sample=False, eos_token_id=None,
                         pad_token_id=0)[0, length:]
    assert own.tolist() == tokens[0].tolist(), "generate() and the step loop differ"
    whole = model(input_ids=torch.tensor([prompt])).logits[0].numpy()
    top = np.sort(greedy_logits[0], -1)
    info = dict(prompt=prompt, greedy=tokens[0].tolist(),
                min_top1_top2_margin=round(float((top[:, -1] - top[:, -2]).min()), 4))
    return info, whole, greedy_logits[0]


def make(name, build, seed, out):
    directory = os.path.join(out, name)
    model, auto_class = build(seed)
    model.save_pretrained(directory)
    os.chmod(os.path.join(directory, "model.safetensors"), 0o644)
    model = auto_class.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager").eval()
    info = dict(model=name, seed=seed, transformers=transformers.__version__, torch=torch.__version__.split("+")[0])
    tensors = {}
    for label, length, steps in (("short", SHORT_TOKENS, SHORT_STEPS), ("long", LONG_TOKENS, LONG_STEPS)):
        info[label], tensors[f"{label}.logits"], tensors[f"{label}.greedy_logits"] = golden_of(model, length, steps, seed)
        print(name, label, "margin", info[label]["min_top1_top2_margin"],
              "logit std", round(float(tensors[f"{label}.logits"].std()), 2), info[label]["greedy"])
    path = os.path.join(directory, "golden.safetensors")
    save_file({k: np.ascontiguousarray(v, np.float32) for k, v in tensors.items()}, path)
    os.chmod(path, 0o644)
    with open(os.path.join(directory, "golden.json"), "w") as f:
        json.dump(info, f, indent=1)


GOLDENS = dict(hf_nested=(build_nested, 7101), hf_flat=(build_flat, 7202))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", default=os.path.join(here, "..", "..", "tests", "goldens"))
    ap.add_argument("names", nargs="*", default=list(GOLDENS), metavar="NAME")
    args = ap.parse_args()
    unknown = [n for n in args.names if n not in GOLDENS]
    if unknown:
        ap.error(f"unknown golden {unknown[0]}, want one of {', '.join(GOLDENS)}")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    for name in args.names:
        build, seed = GOLDENS[name]
        make(name, build, seed, args.out)


if __name__ == "__main__":
    main()
