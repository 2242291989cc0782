#!/usr/bin/env python3
"""Makes a golden file of `sluice validate` (docs/VALIDATION.md) with Hugging Face transformers, in float32 on the CPU.

    python3 tools/goldens/make_validation_golden.py MODEL --out FILE [--varied] [--text FILE ...] [--ids 1,2,3 ...] [--tokens N]
    python3 tools/goldens/make_validation_golden.py models/tiny --varied --tokens 16 --out models/tiny/validation_golden.json

The second line is how the file of the embedded model is made, again after each training. --varied: texts, chat prompts with
and without thinking, tools and earlier turns, of 1 to 1,000 tokens. All is tokenised with the model's own tokenizer and
chat template. Packages: requirements.txt beside this file.
"""
import argparse
import json
import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # transformers may look for optional kernels; never here

import torch
from transformers import AutoModelForCausalLM

MARGIN_MIN = 0.5  # of logits with a deviation of 2.5 to 3: bfloat16 weights and activations stay well below


TEXTS = ("The", "Once upon a time there was a small village", "def add(a, b):\n    return", "1, 2, 3, 4,", '{"name": "Anna", "age":',
         "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.", "こんにちは、世界。", "The price is 3.50 € (+7 %).\n\n\tTotal:")
CHATS = (["Hello"], ["What is 12 + 30?"], ["Sort these words: pear, apple, fig."], ["Spell the word village."],
         ["My name is Anna.", "Hello Anna.", "What is my name?"], ["Repeat after me: the quiet river."])
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
SENTENCES = ("The baker walked to the old market because it was late. ", "In winter the sailor sold apples and then went home. ",
             "The bridge was quiet, but nobody knew why. ", "My neighbour found letters and lamps after the rain. ")
FACT = "The access code for Anna is 4817. "
LENGTHS = (63, 64, 65, 130, 300, 1000)  # tokens, about: around a block of 64, and on


def varied_prompts(model):
    """Token ids of prompts of many kinds."""
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(model)

    def chat(texts, **options):
        messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, **options)
        return tokenizer(text, add_special_tokens=False).input_ids

    for text in TEXTS:
        yield tokenizer(text, add_special_tokens=False).input_ids
    for texts in CHATS:
        yield chat(texts, enable_thinking=False)
    yield chat(CHATS[1], enable_thinking=True)
    yield chat(["What is the weather in Paris?"], tools=[TOOL], enable_thinking=False)
    for length in LENGTHS:
        filler = "".join(SENTENCES[i % 4] for i in range(length))
        ids = tokenizer(filler, add_special_tokens=False).input_ids
        half = tokenizer.decode(ids[:length // 2]), tokenizer.decode(ids[length // 2:length])
        yield chat([half[0] + FACT + half[1] + "\n\nWhat is the access code for Anna?"], enable_thinking=False)
        if length < LENGTHS[-1]:
            yield ids[:length]


def prompts(model, varied, texts, ids):
    if varied:
        yield from varied_prompts(model)
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
        margins.append(round(float(best.values[0] - best.values[1]), 2))
        step = chosen[-1:]
    return chosen, margins


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--out", required=True)
    parser.add_argument("--varied", action="store_true", help="prompts of many kinds, made up here")
    parser.add_argument("--text", action="append", default=[], help="file with a prompt; may be repeated")
    parser.add_argument("--ids", action="append", default=[], help="token ids of a prompt; may be repeated")
    parser.add_argument("--tokens", type=int, default=24)
    args = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    cases = []
    for prompt in prompts(args.model, args.varied, args.text, args.ids):
        chosen, margins = greedy(model, prompt, args.tokens)
        cases.append({"prompt_ids": prompt, "greedy_ids": chosen, "margins": margins})
    if not cases:
        parser.error("no --varied, no --text and no --ids")
    lines = ",\n".join("  " + json.dumps(case, separators=(",", ":")) for case in cases)
    name = Path(args.model).resolve().name
    Path(args.out).write_text(f'{{"model": {json.dumps(name)}, "margin_min": {MARGIN_MIN},\n "cases": [\n{lines}\n ]}}\n')


if __name__ == "__main__":
    main()
