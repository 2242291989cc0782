"""Trains the tokenizer of the tiny model: byte-level BPE in the family's layout.

    python tools/tiny-model/make_tokenizer.py --out DIR

Writes tokenizer.json, tokenizer_config.json and generation_config.json. Deterministic: the text is a
seeded sample of the generated conversations and corpus.txt beside this file, which has other
languages, code and rarer words in it.
"""
import argparse
import itertools
import json
import os

os.environ["RAYON_NUM_THREADS"] = "1"  # the trainer's merge order must not depend on threads

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,  # noqa: E402
                        pre_tokenizers, trainers)

import words  # noqa: E402
from render import CONTROL, HERE, render  # noqa: E402
from skills import SKILLS  # noqa: E402
from stream import conversations  # noqa: E402

SEED = 5
BPE_TOKENS = 1968
SAMPLE_CHARACTERS = 1_500_000
CORPUS_REPEATS = 4
CONTEXT_TOKENS = 131072

PIECES = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")

# In the family's order. The ones that mark up text (thinking, tools, code) are not "special": they
# stay in decoded text. The last seven are known to tokenizer_config.json only, as in the releases.
CONTROL_TOKENS = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>",
    "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>",
    "<think>", "</think>", "<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>",
    "<tts_text_bos_single>", "<|audio_pad|>",
]
IN_CONFIG_ONLY = 7
NOT_SPECIAL = {"<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
               "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"}


def control_id(token):
    return BPE_TOKENS + CONTROL_TOKENS.index(token)


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


def train_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PIECES), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=BPE_TOKENS, min_frequency=2, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(sample_text(), trainer)
    assert tokenizer.get_vocab_size() == BPE_TOKENS, tokenizer.get_vocab_size()
    for token in CONTROL_TOKENS[:-IN_CONFIG_ONLY]:
        added = AddedToken(token, normalized=False, special=token not in NOT_SPECIAL)
        tokenizer.add_special_tokens([added]) if added.special else tokenizer.add_tokens([added])
    for token in CONTROL_TOKENS[:-IN_CONFIG_ONLY]:
        assert tokenizer.token_to_id(token) == control_id(token), token
    return tokenizer


def tokenizer_config():
    decoder = {str(control_id(t)): dict(content=t, lstrip=False, normalized=False, rstrip=False, single_word=False,
                                        special=t not in NOT_SPECIAL) for t in CONTROL_TOKENS}
    return dict(add_bos_token=False, add_prefix_space=False, added_tokens_decoder=decoder, bos_token=None,
                clean_up_tokenization_spaces=False, eos_token="<|im_end|>", errors="replace",
                model_max_length=CONTEXT_TOKENS, pad_token="<|endoftext|>", pretokenize_regex=PIECES,
                split_special_tokens=False, tokenizer_class="Qwen2Tokenizer", unk_token=None)


def generation_config():
    end, stop = control_id("<|endoftext|>"), control_id("<|im_end|>")
    return dict(bos_token_id=end, do_sample=True, eos_token_id=[stop, end], pad_token_id=end, temperature=1.0,
                top_k=20, top_p=0.95)


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1, ensure_ascii=False)
        f.write("\n")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", required=True)
    out = ap.parse_args().out
    os.makedirs(out, exist_ok=True)
    train_tokenizer().save(os.path.join(out, "tokenizer.json"))
    write_json(os.path.join(out, "tokenizer_config.json"), tokenizer_config())
    write_json(os.path.join(out, "generation_config.json"), generation_config())


if __name__ == "__main__":
    main()
