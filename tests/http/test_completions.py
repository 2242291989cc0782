"""Plain completions: prompts in every form, and what is made of them."""
import json

import pytest

ASK = {"max_tokens": 6, "temperature": 0, "return_token_ids": True}


def complete(http, prompt, **fields):
    reply = http.post("/v1/completions", json=ASK | {"prompt": prompt} | fields)
    assert reply.status_code == 200, reply.text
    return reply.json()


def tokens_of(http, text, **fields):
    return http.post("/tokenize", json={"prompt": text} | fields).json()["tokens"]


def test_prompts_in_every_form(http):
    """A text, its tokens, and both in lists are the same prompt."""
    texts = ["Once upon", "The heron"]
    ids = [tokens_of(http, text) for text in texts]
    alone = [complete(http, text)["choices"][0]["token_ids"] for text in texts]
    assert complete(http, ids[0])["choices"][0]["token_ids"] == alone[0]
    for prompts in (texts, ids):
        reply = complete(http, prompts)
        assert [choice["index"] for choice in reply["choices"]] == [0, 1]
        assert [choice["token_ids"] for choice in reply["choices"]] == alone
        assert [choice["prompt_token_ids"] for choice in reply["choices"]] == ids
        assert reply["usage"]["prompt_tokens"] == sum(map(len, ids))


def test_the_index_counts_prompts_first(http):
    reply = complete(http, ["Once upon", "The heron"], n=2, temperature=1, seed=4)
    assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2, 3]
    first, second = (tokens_of(http, text) for text in ("Once upon", "The heron"))
    assert [choice["prompt_token_ids"] for choice in reply["choices"]] == [first, first, second, second]
    assert reply["usage"]["prompt_tokens"] == len(first) + len(second)


def test_sixteen_tokens_unless_told_otherwise(http):
    reply = http.post("/v1/completions", json={"prompt": "Once", "ignore_eos": True})
    assert reply.json()["usage"]["completion_tokens"] == 16
    assert complete(http, "Once", max_tokens=0)["choices"][0] | {"prompt_token_ids": 0} == {
        "index": 0, "text": "", "logprobs": None, "finish_reason": "length", "stop_reason": None, "token_ids": [], "prompt_token_ids": 0}


def test_control_tokens_are_tokens_unless_told_otherwise(http):
    text = "<|im_start|>user\n"
    assert complete(http, text)["choices"][0]["prompt_token_ids"] == tokens_of(http, text)
    literal = complete(http, text, parse_special=False)["choices"][0]["prompt_token_ids"]
    assert literal == tokens_of(http, text, parse_special=False) and len(literal) > len(tokens_of(http, text))


def test_echo(http):
    plain = complete(http, "Once upon")["choices"][0]["text"]
    assert complete(http, "Once upon", echo=True)["choices"][0]["text"] == "Once upon" + plain
    assert complete(http, tokens_of(http, "Once upon"), echo=True)["choices"][0]["text"] == "Once upon" + plain


def test_logprobs_have_offsets(http):
    choice = complete(http, "Once upon", logprobs=2, skip_special_tokens=False)["choices"][0]
    said = choice["logprobs"]
    assert len(said["tokens"]) == len(said["token_logprobs"]) == len(said["top_logprobs"]) == len(choice["token_ids"])
    assert said["text_offset"] == [len("".join(said["tokens"][:i])) for i in range(len(said["tokens"]))]
    for token, value, top in zip(said["tokens"], said["token_logprobs"], said["top_logprobs"]):
        assert top[token] == value == max(top.values())


def test_echo_with_logprobs_scores_the_prompt(http):
    """What the model said of its own tokens while it wrote them, it says of them as a prompt."""
    first = complete(http, "Once upon", logprobs=2, skip_special_tokens=False)
    said = first["choices"][0]["logprobs"]
    prompt = first["choices"][0]["prompt_token_ids"] + first["choices"][0]["token_ids"]
    for fields in ({"max_tokens": 0}, {"max_tokens": 3}, {"max_tokens": 0, "stream": True, "stream_options": {"include_usage": True}}):
        asked = ASK | {"prompt": prompt, "echo": True, "logprobs": 2, "skip_special_tokens": False} | fields
        reply = http.post("/v1/completions", json=asked)
        assert reply.status_code == 200, reply.text
        scored, usage = joined_logprobs(reply) if fields.get("stream") else (reply.json()["choices"][0]["logprobs"], reply.json()["usage"])
        begin = len(prompt) - len(said["tokens"])
        assert scored["token_logprobs"][0] is None and scored["top_logprobs"][0] is None and scored["text_offset"][0] == 0
        assert None not in scored["token_logprobs"][1:]
        for key in ("tokens", "token_logprobs", "top_logprobs"):
            assert scored[key][begin:len(prompt)] == said[key], key
        assert len(scored["tokens"]) == len(prompt) + fields["max_tokens"]
        assert usage["prompt_tokens_details"]["cached_tokens"] == 0
        assert scored["text_offset"] == [len("".join(scored["tokens"][:i])) for i in range(len(scored["tokens"]))]


def test_one_token_is_always_listed(http):
    """Harnesses ask for one, and take all entries but the last: also where it is the end of text, which has no text."""
    end = http.post("/tokenize", json={"prompt": "<|im_end|>"}).json()["tokens"]
    for token in (*end, 11):
        for stream in (False, True):
            reply = http.post("/v1/completions", json={
                "prompt": "Once upon", "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0, "stream": stream,
                "stream_options": {"include_usage": True} if stream else None, "logit_bias": {str(token): 100}})
            scored, usage = joined_logprobs(reply) if stream else (reply.json()["choices"][0]["logprobs"], reply.json()["usage"])
            assert len(scored["tokens"]) == len(scored["token_logprobs"]) == usage["prompt_tokens"] + 1, (token, stream)


def joined_logprobs(reply):
    """Of a stream with one choice: its logprobs, its usage."""
    chunks = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
    said = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            for key, values in choice["logprobs"].items():
                said.setdefault(key, []).extend(values)
    return said, chunks[-1]["usage"]


def test_a_choice_is_scored_by_what_it_costs(http):
    """As evaluation harnesses do it: the likelihood of a continuation is the sum over its tokens."""
    context, endings = tokens_of(http, "The heron stood"), [tokens_of(http, text) for text in (" still", " on the moon")]
    whole = [complete(http, context + ending, max_tokens=1, echo=True, logprobs=1)["choices"][0]["logprobs"] for ending in endings]
    batch = complete(http, [context + ending for ending in endings], max_tokens=1, echo=True, logprobs=1)["choices"]
    assert [choice["logprobs"] for choice in batch] == whole
    assert all(len(said["tokens"]) == len(context) + len(ending) + 1 for said, ending in zip(whole, endings))


@pytest.mark.parametrize("prompt", ["", [], [[]], ["a", ""], [["a"]], [1, "a"], 5, {"a": 1}, None, [2**31], [-1], [1.5], "x " * 3000])
def test_prompts_that_are_none(http, prompt):
    reply = http.post("/v1/completions", json=ASK | {"prompt": prompt})
    assert reply.status_code == 400 and reply.json()["error"]["param"].startswith("prompt")


def test_the_context_is_filled_to_its_last_token(http):
    """A prompt of one token less than the context has room for one; one as long as the context has none."""
    full = http.post("/v1/completions", json={"prompt": [7] * 2048, "max_tokens": 1})
    assert full.status_code == 400 and full.json()["error"]["code"] == "context_length_exceeded"
    last = complete(http, [7] * 2047, max_tokens=32000, ignore_eos=True)
    assert last["usage"]["completion_tokens"] == 1 and last["choices"][0]["finish_reason"] == "length"
