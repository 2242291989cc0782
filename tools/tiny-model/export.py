"""Writes the trained weights as a model directory.

    python tools/tiny-model/export.py --training DIR/training.safetensors --out models/tiny

model.safetensors in bfloat16 (A_log and linear_attn.norm in float32, as in the small releases),
config.json and preprocessor_config.json. The tokenizer's files are make_tokenizer.py's.
"""
import argparse
import os

import torch
from safetensors import safe_open
from safetensors.torch import save_file

import config
from family_tokenizer import write_json
from weights import shapes

FLOAT32 = ("linear_attn.A_log", "linear_attn.norm.weight")


def rounded(path):
    """The trained weights in the types of the file, rounded to bfloat16 all of them."""
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name).bfloat16() for name in shapes()}
    return {name: t.float() if name.endswith(FLOAT32) else t for name, t in tensors.items()}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--training", required=True)
    ap.add_argument("--out", required=True)
    options = ap.parse_args()
    os.makedirs(options.out, exist_ok=True)
    tensors = rounded(options.training)
    assert all(torch.isfinite(t).all() for t in tensors.values())
    save_file(tensors, os.path.join(options.out, "model.safetensors"), {"format": "pt"})
    write_json(os.path.join(options.out, "config.json"), config.CONFIG)
    write_json(os.path.join(options.out, "preprocessor_config.json"), config.PREPROCESSOR)


if __name__ == "__main__":
    main()
