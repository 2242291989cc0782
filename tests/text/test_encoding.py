"""Encoding and decoding equal Hugging Face tokenizers, with the family's real tokenizer."""
import json
import random

import pytest
from tokenizers import Tokenizer

import corpus
import real_tokenizer as real

SEED = 20260

KNOWN = {
    "Hello": [9419],
    "Hello, how are you?": [9419, 11, 1204, 513, 488, 30],
    "What is 2+2?": [3710, 369, 220, 17, 10, 17, 30],
    "What causes the seasons on Earth? Answer in exactly three sentences.":
        [3710, 10814, 279, 15127, 383, 8964, 30, 21134, 303, 6681, 2250, 22157, 13],
    "user": [846], "assistant": [74455], "system": [8678], "\n": [198], "\n\n": [271],
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n":
        [248045, 846, 198, 9419, 248046, 198, 248045, 74455, 198, 248068, 271, 248069, 271],
    "<|im_start|>assistant\n<think>\n": [248045, 74455, 198, 248068, 198],
}


@pytest.fixture(scope="module")
def tool(start_tool, real_tokenizer):
    return start_tool(real_tokenizer)


@pytest.fixture(scope="module")
def reference(real_tokenizer):
    return real.reference(real_tokenizer)


@pytest.fixture(scope="module")
def reference_without_controls(real_tokenizer, tmp_path_factory):
    data = json.loads((real_tokenizer / "tokenizer.json").read_text(encoding="utf-8"))
    data["added_tokens"] = []
    path = tmp_path_factory.mktemp("literal") / "tokenizer.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return Tokenizer.from_file(str(path))


@pytest.fixture(scope="module")
def texts():
    result = corpus.texts(SEED, 3000, 400)
    assert sum(len(text.encode()) for text in result) > 3_000_000
    return result


def encode(reference, text):
    return reference.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("text", KNOWN)
def test_published_encodings(tool, text):
    assert tool.ask("encode", text=text)["ids"] == KNOWN[text]


def test_encodes_as_hugging_face(tool, reference, texts):
    for text in texts:
        assert tool.ask("encode", text=text)["ids"] == encode(reference, text), repr(text)


def test_what_is_remembered_does_not_show(tool, reference, texts):
    """Long texts that begin alike, and come again: cut between lines, parts found and not found."""
    rng = random.Random(SEED)
    said = ""
    for text in texts:
        said += rng.choice(["\n", "\n\n", " \n", "\r\n", " ", ""]) + text
        if len(said) > 20_000:
            cut = said[:rng.randrange(len(said))] + rng.choice(["", "\nA", "e\u0301"])
            for long in (said, cut, said):
                assert tool.ask("encode_owned", text=long)["ids"] == encode(reference, long), repr(long)
            said = said[:rng.randrange(4000)] if rng.random() < 0.5 else ""


def test_literal_encodes_as_hugging_face_without_control_tokens(tool, reference_without_controls, texts):
    for text in texts[::3]:
        assert tool.ask("encode_literal", text=text)["ids"] == encode(reference_without_controls, text), repr(text)


def test_decodes_as_hugging_face(tool, reference, texts):
    for index, text in enumerate(texts[::3]):
        ids, skip = encode(reference, text), index % 2 == 0
        answer = tool.ask("decode", ids=ids, skip=skip)
        assert answer["text"] == reference.decode(ids, skip_special_tokens=skip)
        assert answer["streamed"] == answer["text"]


def test_decodes_any_ids_as_hugging_face(tool, reference):
    rng = random.Random(SEED)
    # Ids below 256 are single bytes: their random order is mostly not UTF-8.
    for index in range(2000):
        limit = (256, 2000, 248077)[index % 3]
        ids, skip = [rng.randrange(limit) for _ in range(rng.randrange(40))], rng.random() < 0.5
        answer = tool.ask("decode", ids=ids, skip=skip)
        assert answer["text"] == reference.decode(ids, skip_special_tokens=skip), ids
        assert answer["streamed"] == answer["text"], ids


def test_every_token_decodes_as_hugging_face(tool, reference):
    for token_id in range(reference.get_vocab_size()):
        if token_id % 17 == 0 or token_id >= 248000:
            text = tool.ask("decode", ids=[token_id], skip=False)["text"]
            assert text == reference.decode([token_id], skip_special_tokens=False), token_id


@pytest.mark.parametrize("token_id", [-1, 248077, 248319, 2**31 - 1])
def test_ids_without_a_token_are_refused(tool, token_id):
    answer = tool.ask("decode", ids=[0, token_id], skip=False)
    assert answer["error"] == "invalid_argument"
    assert f"token_ids[1] = {token_id}" in answer["message"]
