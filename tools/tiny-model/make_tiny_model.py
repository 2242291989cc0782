"""Builds models/tiny: a small random checkpoint with a small real tokenizer.

    python3 tools/tiny-model/make_tiny_model.py [--out DIR]

Deterministic.  The tokenizer is a byte-level BPE in the family's layout, trained on corpus.txt
beside this file; the weights are the oracle's random weights.  The chat template, README and
licence of the model directory are written by hand and left alone.  Packages: requirements.txt.
"""
import argparse
import json
import os
import sys

os.environ["RAYON_NUM_THREADS"] = "1"  # the trainer's merge order must not depend on threads

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))

from qwen3_5_oracle.random_weights import random_weights  # noqa: E402
from qwen3_5_oracle.safetensors import write_safetensors  # noqa: E402

SEED = 20
BPE_TOKENS = 1400
EMBEDDING_ROWS = 1472  # more than there are ids, as in the releases: the rest must never be chosen

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


def train_tokenizer():
    with open(os.path.join(HERE, "corpus.txt"), encoding="utf-8") as f:
        text = f.read()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PIECES), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=BPE_TOKENS, min_frequency=2, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator([text], trainer)
    if tokenizer.get_vocab_size() != BPE_TOKENS:
        sys.exit(f"the corpus gives {tokenizer.get_vocab_size()} tokens, want {BPE_TOKENS}: it is too small")
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
                model_max_length=4096, pad_token="<|endoftext|>", pretokenize_regex=PIECES, split_special_tokens=False,
                tokenizer_class="Qwen2Tokenizer", unk_token=None)


def model_config():
    kinds = ["linear_attention", "linear_attention", "linear_attention", "full_attention"]
    text = dict(model_type="qwen3_5_text", vocab_size=EMBEDDING_ROWS, hidden_size=128, intermediate_size=256,
                num_hidden_layers=4, layer_types=kinds, full_attention_interval=4, num_attention_heads=2,
                num_key_value_heads=1, head_dim=256, linear_num_key_heads=1, linear_num_value_heads=2,
                linear_key_head_dim=128, linear_value_head_dim=128, linear_conv_kernel_dim=4, hidden_act="silu",
                rms_norm_eps=1e-6, attention_bias=False, attn_output_gate=True, mamba_ssm_dtype="float32",
                max_position_embeddings=4096, tie_word_embeddings=True, mtp_num_hidden_layers=0,
                mtp_use_dedicated_embeddings=False, eos_token_id=control_id("<|endoftext|>"), dtype="bfloat16",
                use_cache=True,
                rope_parameters=dict(rope_type="default", rope_theta=10000000, partial_rotary_factor=0.25,
                                     mrope_section=[11, 11, 10], mrope_interleaved=True))
    return dict(architectures=["Qwen3_5ForConditionalGeneration"], model_type="qwen3_5", language_model_only=True,
                image_token_id=control_id("<|image_pad|>"), video_token_id=control_id("<|video_pad|>"),
                vision_start_token_id=control_id("<|vision_start|>"), vision_end_token_id=control_id("<|vision_end|>"),
                text_config=text, tie_word_embeddings=True)


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
    ap.add_argument("--out", default=os.path.join(HERE, "..", "..", "models", "tiny"))
    out = ap.parse_args().out
    os.makedirs(out, exist_ok=True)
    train_tokenizer().save(os.path.join(out, "tokenizer.json"))
    write_json(os.path.join(out, "tokenizer_config.json"), tokenizer_config())
    write_json(os.path.join(out, "generation_config.json"), generation_config())
    config = model_config()
    write_json(os.path.join(out, "config.json"), config)
    write_safetensors(os.path.join(out, "model.safetensors"), random_weights(config, SEED), {"format": "pt"})
    for name in sorted(os.listdir(out)):
        print(f"{os.path.getsize(os.path.join(out, name)):>9} {name}")


if __name__ == "__main__":
    main()
