"""Builds the tokenizer of the tests in src/text: python3 make_tokenizer.py (needs tokenizers==0.22.2).

A byte-level BPE in the layout of the Qwen3.5 family: NFC, the family's regex, 600 entries and the 33
control tokens, of which the last seven are only in tokenizer_config.json. Deterministic.
"""
import json
import os

os.environ["RAYON_NUM_THREADS"] = "1"  # the trainer's merge order must not depend on threads

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
BPE_TOKENS = 600
PIECES = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL_BEFORE_TOOLS = ("endoftext im_start im_end object_ref_start object_ref_end box_start box_end quad_start "
                        "quad_end vision_start vision_end vision_pad image_pad video_pad").split()
CONTROL_TOKENS = (
    [f"<|{name}|>" for name in SPECIAL_BEFORE_TOOLS]
    + ["<tool_call>", "</tool_call>"]
    + [f"<|{name}|>" for name in "fim_prefix fim_middle fim_suffix fim_pad repo_name file_sep".split()]
    + ["<tool_response>", "</tool_response>", "<think>", "</think>"]
    + ["<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>", "<tts_text_bos_single>",
       "<|audio_pad|>"])
IN_CONFIG_ONLY = 7
NOT_SPECIAL = set(CONTROL_TOKENS[14:26])  # tool, fim, repo and think tokens stay in decoded text

TEXT = """
The river rises in the hills, runs through three locks and meets the sea near the old harbour. In the
morning the keeper opens the gate; in the evening the keeper closes it. "How many boats today?" she asked.
"Seventeen, and one that wouldn't wait," he said. I'm sure they'll be back, we've seen them before, haven't we?
for (int index = 0; index < count; ++index) { total += values[index] * weights[index]; }
def answer(question): return {"role": "assistant", "content": question.strip(), "count": 42, "ready": true}
if value is None: raise ValueError("value must not be None, got " + repr(value)) # see the note below
<div class="note"> <p>The weather in Zürich is 12 degrees; naïve café façade, smörgåsbord, Ærøskøbing.</p> </div>
The model thinks, the tool responds, the assistant answers and the user reads the answer.
""".strip() + "\n\n" + "水门打开,船通过。水门关闭,船等待。今天的天气很好。\n川の水は海へ流れる。門を開けてください。\n" * 2


def main():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PIECES), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([TEXT], trainers.BpeTrainer(
        vocab_size=BPE_TOKENS, min_frequency=1, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    assert tokenizer.get_vocab_size() == BPE_TOKENS
    decoder = {}
    for index, token in enumerate(CONTROL_TOKENS):
        added = AddedToken(token, normalized=False, special=token not in NOT_SPECIAL)
        if index < len(CONTROL_TOKENS) - IN_CONFIG_ONLY:
            tokenizer.add_special_tokens([added]) if added.special else tokenizer.add_tokens([added])
            assert tokenizer.token_to_id(token) == BPE_TOKENS + index
        decoder[str(BPE_TOKENS + index)] = dict(content=token, lstrip=False, normalized=False, rstrip=False,
                                                single_word=False, special=added.special)
    tokenizer.save(os.path.join(HERE, "tokenizer.json"))
    with open(os.path.join(HERE, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump(dict(added_tokens_decoder=decoder, eos_token="<|im_end|>", pad_token="<|endoftext|>"), file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
