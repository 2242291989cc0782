#!/usr/bin/env python3
"""Makes a golden file of `sluice validate` (docs/VALIDATION.md) with Hugging Face transformers, in float32 on the CPU.

    python3 tools/goldens/make_validation_golden.py MODEL --out FILE [--text FILE ...] [--ids 1,2,3 ...] [--tokens N]

Each text is tokenised with the model's own tokenizer.json. Packages: requirements.txt beside this file.
"""
import argparse
import json
import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # transformers may look for optional kernels; never here

import torch
from transformers import AutoModelForCausalLM

MARGIN_MIN = 0.5  # of logits with a deviation of 2.5 to 3: bfloat16 weights and activations stay well below


def prompts(model, texts, ids):
    for path in texts:
        from tokenizers import Tokenizer
        yield Tokenizer.from_file(str(Path(model) / "tokenizer.json")).encode(Path(path).read_text(), add_special_tokens=False).ids
    for text in ids:
        yield [int(word) for word in text.split(",")]


@torch.no_grad()
def greedy(model, prompt, count):
    """`count` greedy tokens after the prompt, and how far each is ahead of the second best."""
    chosen, margins, cache, step = [], [], None, list(prompt)
    for _ in range(count):
        out = model(input_ids=torch.tensor([step]), past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        best = torch.topk(out.logits[0, -1].double(), 2)
        chosen.append(int(best.indices[0]))
        margins.append(round(float(best.values[0] - best.values[1]), 4))
        step = chosen[-1:]
    return chosen, margins


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--out", required=True)
    parser.add_argument("--text", action="append", default=[], help="file with a prompt; may be repeated")
    parser.add_argument("--ids", action="append", default=[], help="token ids of a prompt; may be repeated")
    parser.add_argument("--tokens", type=int, default=24)
    args = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    cases = []
    for prompt in prompts(args.model, args.text, args.ids):
        chosen, margins = greedy(model, prompt, args.tokens)
        cases.append({"prompt_ids": prompt, "greedy_ids": chosen, "margins": margins})
    if not cases:
        parser.error("no --text and no --ids")
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    name = Path(args.model).resolve().name
    Path(args.out).write_text(f'{{"model": {json.dumps(name)}, "margin_min": {MARGIN_MIN},\n "cases": [\n{lines}\n ]}}\n')


if __name__ == "__main__":
    main()
