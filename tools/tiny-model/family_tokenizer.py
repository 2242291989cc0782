"""A small tokenizer in the family's layout: NFC, its piece pattern, byte-level BPE, then its control tokens.

Deterministic: the same texts and size give the same bytes.
"""
import json
import os

os.environ["RAYON_NUM_THREADS"] = "1"  # the trainer's merge order must not depend on threads

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,  # noqa: E402
                        pre_tokenizers, trainers)

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


class Layout:
    """Ids of a tokenizer with so many BPE entries: the control tokens follow them."""

    def __init__(self, bpe_tokens, context_tokens):
        self.bpe_tokens, self.context_tokens = bpe_tokens, context_tokens

    def control_id(self, token):
        return self.bpe_tokens + CONTROL_TOKENS.index(token)

    def train(self, texts):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(PIECES), "isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
            vocab_size=self.bpe_tokens, min_frequency=2, show_progress=False,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
        size = tokenizer.get_vocab_size()
        assert size == self.bpe_tokens, f"the texts give {size} tokens, want {self.bpe_tokens}: too few"
        for token in CONTROL_TOKENS[:-IN_CONFIG_ONLY]:
            added = AddedToken(token, normalized=False, special=token not in NOT_SPECIAL)
            tokenizer.add_special_tokens([added]) if added.special else tokenizer.add_tokens([added])
        for token in CONTROL_TOKENS[:-IN_CONFIG_ONLY]:
            assert tokenizer.token_to_id(token) == self.control_id(token), token
        return tokenizer

    def tokenizer_config(self):
        listed = {str(self.control_id(token)): dict(
            content=token, lstrip=False, normalized=False, rstrip=False, single_word=False,
            special=token not in NOT_SPECIAL) for token in CONTROL_TOKENS}
        return dict(add_bos_token=False, add_prefix_space=False, added_tokens_decoder=listed, bos_token=None,
                    clean_up_tokenization_spaces=False, eos_token="<|im_end|>", errors="replace",
                    model_max_length=self.context_tokens, pad_token="<|endoftext|>", pretokenize_regex=PIECES,
                    split_special_tokens=False, tokenizer_class="Qwen2Tokenizer", unk_token=None)

    def generation_config(self):
        end, stop = self.control_id("<|endoftext|>"), self.control_id("<|im_end|>")
        return dict(bos_token_id=end, do_sample=True, eos_token_id=[stop, end], pad_token_id=end, temperature=1.0,
                    top_k=20, top_p=0.95)

    def write(self, texts, directory):
        """tokenizer.json, tokenizer_config.json and generation_config.json."""
        os.makedirs(directory, exist_ok=True)
        self.train(texts).save(os.path.join(directory, "tokenizer.json"))
        write_json(os.path.join(directory, "tokenizer_config.json"), self.tokenizer_config())
        write_json(os.path.join(directory, "generation_config.json"), self.generation_config())


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1, ensure_ascii=False)
        f.write("\n")
