"""Writes a checkpoint that says a given text, and nothing else, whatever it is asked.

Every layer adds nothing, so the last hidden state is the embedding of the last token, a random sign
vector; the head maps each of them to the next token of the script.  A token can only have one
successor, so the text is cut into tokens of which none comes twice.  That is seldom how the tokenizer
would cut it, as with real models.
"""
import json
import random
import shutil
import struct
from pathlib import Path

from test_data import EMBEDDED, TEXT_FILES, random_config

HIDDEN = 256
ONE, MINUS_ONE = 0x3F80, 0xBF80  # bfloat16


def byte_alphabet():
    """Character of a byte-level tokenizer -> byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(others)}


class Vocabulary:
    def __init__(self, directory=EMBEDDED):
        described = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
        alphabet = byte_alphabet()
        self.ids = {bytes(alphabet[c] for c in text): i for text, i in described["model"]["vocab"].items()}
        self.added = {entry["content"]: entry["id"] for entry in described["added_tokens"]}

    def distinct_tokens(self, parts, used):
        """Ids of the parts: names of added tokens, or texts to be cut into tokens not used yet."""
        if not parts:
            return []
        if parts[0] in self.added:
            token = self.added[parts[0]]
            rest = self.distinct_tokens(parts[1:], used | {token})
            return None if rest is None or token in used else [token, *rest]
        text = parts[0].encode()
        for size in range(len(text), 0, -1):
            token = self.ids.get(text[:size])
            if token is None or token in used:
                continue
            left = [text[size:].decode()] if size < len(text) else []
            rest = self.distinct_tokens([*left, *parts[1:]], used | {token})
            if rest is not None:
                return [token, *rest]
        return None


def write_scripted_model(directory, parts, after):
    """`parts` as in distinct_tokens(); said after a prompt that ends with the token of the text `after`.
    Returns the ids of the script, the end token not among them."""
    directory = Path(directory)
    vocabulary = Vocabulary()
    first = vocabulary.ids[after.encode()]
    script = vocabulary.distinct_tokens(list(parts), {first})
    assert script, "no cut into tokens of which none comes twice"
    for name in TEXT_FILES:
        shutil.copy(EMBEDDED / name, directory / name)
    config = random_config()
    config["tie_word_embeddings"] = config["text_config"]["tie_word_embeddings"] = False
    config["text_config"]["hidden_size"] = HIDDEN
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")

    draw = random.Random(1)
    vocab_size = config["text_config"]["vocab_size"]
    codes = [[draw.choice((ONE, MINUS_ONE)) for _ in range(HIDDEN)] for _ in range(vocab_size)]
    head = [[0] * HIDDEN for _ in range(vocab_size)]
    for token, successor in zip([first, *script], [*script, vocabulary.added["<|im_end|>"]]):
        head[successor] = codes[token]
    from shapes import list_tensors
    values = {"model.language_model.embed_tokens.weight": codes, "lm_head.weight": head}
    write_safetensors(directory / "model.safetensors", list_tensors(config, "F32"), values)
    return script


def write_safetensors(path, tensors, values):
    """Tensors that `values` does not name are zero."""
    from shapes import byte_count
    header, position = {}, 0
    for tensor in tensors:
        end = position + byte_count(tensor)
        header[tensor.name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors:
            if tensor.name in values:
                for row in values[tensor.name]:
                    file.write(struct.pack(f"<{len(row)}H", *row))
            else:
                file.write(bytes(byte_count(tensor)))
