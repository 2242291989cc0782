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

from shapes import byte_count, list_tensors  # where test_data looks

HIDDEN = 256
PIECE = 4  # characters of a token of the script
ONE, MINUS_ONE = 0x3F80, 0xBF80  # bfloat16


def byte_alphabet():
    """Byte -> character of a byte-level tokenizer."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}


class Vocabulary:
    """The embedded model's, where it must be with tokens of the script's own in the place of those it learnt last."""

    def __init__(self):
        self.described = json.loads((EMBEDDED / "tokenizer.json").read_text(encoding="utf-8"))
        self.ids = self.described["model"]["vocab"]
        self.added = {entry["content"]: entry["id"] for entry in self.described["added_tokens"]}
        self.learnt_last = sorted(self.ids, key=self.ids.get)
        self.spelling = byte_alphabet()

    def spelled(self, text):
        return "".join(self.spelling[b] for b in text.encode())

    def script(self, parts, first):
        """Ids of the parts, names of added tokens or texts: known tokens if there is a cut in which none comes twice, else
        pieces of their own. `first` is taken."""
        known = self.distinct_tokens(list(parts), {first})
        if known is not None:
            return known
        return [token for part in parts for token in ([self.added[part]] if part in self.added else self.pieces(part))]

    def distinct_tokens(self, parts, used):
        if not parts:
            return []
        text = parts[0]
        if text in self.added:
            token = self.added[text]
            rest = self.distinct_tokens(parts[1:], used | {token})
            return None if rest is None or token in used else [token, *rest]
        for size in range(len(text), 0, -1):
            token = self.ids.get(self.spelled(text[:size]))
            if token is None or token in used:
                continue
            rest = self.distinct_tokens([*([text[size:]] if size < len(text) else []), *parts[1:]], used | {token})
            if rest is not None:
                return [token, *rest]
        return None

    def pieces(self, text):
        cut = [text[i:i + PIECE] for i in range(0, len(text), PIECE)]
        return [self.ids[piece] if piece in self.ids else self.replace_last(piece) for piece in map(self.spelled, cut)]

    def replace_last(self, spelling):
        """The id of the token learnt last, which is spelt like that from now on."""
        last = self.learnt_last.pop()
        model = self.described["model"]
        model["merges"] = [merge for merge in model["merges"] if last not in (*merge, "".join(merge))]
        self.ids[spelling] = self.ids.pop(last)
        return self.ids[spelling]


def write_scripted_model(directory, parts, after):
    """`parts` as in Vocabulary.script(); said after a prompt that ends with the token of the text `after`.
    Returns the ids of the script, the end token not among them."""
    directory = Path(directory)
    vocabulary = Vocabulary()
    first = vocabulary.ids[vocabulary.spelled(after)]
    script = vocabulary.script(parts, first)
    assert len(set(script)) == len(script), "a token comes twice"
    for name in TEXT_FILES:
        shutil.copy(EMBEDDED / name, directory / name)
    (directory / "tokenizer.json").write_text(json.dumps(vocabulary.described), encoding="utf-8")
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
    values = {"model.language_model.embed_tokens.weight": codes, "lm_head.weight": head}
    write_safetensors(directory / "model.safetensors", list_tensors(config, "F32"), values)
    return script


def write_safetensors(path, tensors, values):
    """Tensors that `values` does not name are zero."""
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
