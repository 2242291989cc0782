"""Trains the tokenizer of the tiny model: byte-level BPE in the family's layout.

    python tools/tiny-model/make_tokenizer.py --out DIR

Writes tokenizer.json, tokenizer_config.json and generation_config.json. Deterministic: the text is a
seeded sample of the generated conversations and corpus.txt beside this file, which has other
languages, code and rarer words in it.
"""
import argparse
import itertools
import os

import words
from family_tokenizer import Layout
from render import CONTROL, HERE, render
from skills import SKILLS
from stream import conversations

SEED = 5
BPE_TOKENS = 1968
SAMPLE_CHARACTERS = 1_500_000
CORPUS_REPEATS = 4
CONTEXT_TOKENS = 131072
LAYOUT = Layout(BPE_TOKENS, CONTEXT_TOKENS)


def sample_text():
    """Generated conversations without their control tokens, then the corpus."""
    rough_count = (lambda text: len(text) // 4 + 1)
    used = 0
    for conversation in conversations(SEED, 1024, {name: 1 for name in SKILLS}, rough_count):
        for part in CONTROL.split(render(conversation))[::2]:
            used += len(part)
            yield part
        if used > SAMPLE_CHARACTERS:
            break
    for first, middle, last in itertools.product(words.FIRST, words.MIDDLE[1:], words.LAST):
        yield f"{first}{middle}{last}"  # names fall into the same parts with and without a space before them
        yield f" {first}{middle}{last}"
    with open(os.path.join(HERE, "corpus.txt"), encoding="utf-8") as f:
        yield from [f.read()] * CORPUS_REPEATS


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", required=True)
    LAYOUT.write(sample_text(), ap.parse_args().out)


if __name__ == "__main__":
    main()
