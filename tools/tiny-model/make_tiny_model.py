"""Builds models/tiny: a small random checkpoint with a small real tokenizer.

    python3 tools/tiny-model/make_tiny_model.py [--out DIR]

Deterministic.  The tokenizer is a byte-level BPE in the family's layout, trained on corpus.txt
beside this file; the weights are the oracle's random weights.  The chat template, README and
licence of the model directory are written by hand and left alone.  Packages: requirements.txt.
"""
import argparse
import os
import sys

from family_tokenizer import Layout, write_json

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))

from qwen3_5_oracle.random_weights import random_weights  # noqa: E402
from qwen3_5_oracle.safetensors import write_safetensors  # noqa: E402

SEED = 20
BPE_TOKENS = 1400
EMBEDDING_ROWS = 1472  # more than there are ids, as in the releases: the rest must never be chosen

LAYOUT = Layout(BPE_TOKENS, 4096)


def model_config():
    kinds = ["linear_attention", "linear_attention", "linear_attention", "full_attention"]
    text = dict(model_type="qwen3_5_text", vocab_size=EMBEDDING_ROWS, hidden_size=128, intermediate_size=256,
                num_hidden_layers=4, layer_types=kinds, full_attention_interval=4, num_attention_heads=2,
                num_key_value_heads=1, head_dim=256, linear_num_key_heads=1, linear_num_value_heads=2,
                linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4, hidden_act="silu",
                rms_norm_eps=1e-6, attention_bias=False, attn_output_gate=True, mamba_ssm_dtype="float32",
                max_position_embeddings=4096, tie_word_embeddings=True, mtp_num_hidden_layers=0,
                mtp_use_dedicated_embeddings=False, eos_token_id=LAYOUT.control_id("<|endoftext|>"), dtype="bfloat16",
                use_cache=True,
                rope_parameters=dict(rope_type="default", rope_theta=10000000, partial_rotary_factor=0.25,
                                     mrope_section=[11, 11, 10], mrope_interleaved=True))
    return dict(architectures=["Qwen3_5ForConditionalGeneration"], model_type="qwen3_5", language_model_only=True,
                image_token_id=LAYOUT.control_id("<|image_pad|>"), video_token_id=LAYOUT.control_id("<|video_pad|>"),
                vision_start_token_id=LAYOUT.control_id("<|vision_start|>"),
                vision_end_token_id=LAYOUT.control_id("<|vision_end|>"),
                text_config=text, tie_word_embeddings=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", default=os.path.join(HERE, "..", "..", "models", "tiny"))
    out = ap.parse_args().out
    with open(os.path.join(HERE, "corpus.txt"), encoding="utf-8") as f:
        LAYOUT.write([f.read()], out)
    config = model_config()
    write_json(os.path.join(out, "config.json"), config)
    write_safetensors(os.path.join(out, "model.safetensors"), random_weights(config, SEED), {"format": "pt"})
    for name in sorted(os.listdir(out)):
        print(f"{os.path.getsize(os.path.join(out, name)):>9} {name}")


if __name__ == "__main__":
    main()
