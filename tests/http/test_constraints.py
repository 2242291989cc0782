"""Answers that must follow a grammar, reasoning that must end, tokens that must not come."""
import concurrent.futures
import json
import random
import re

import jsonschema
import openai
import pytest
from server_process import ServerProcess
from test_data import EMBEDDED

USER = [{"role": "user", "content": "Describe a heron."}]
SENTENCE = ("Considering the limited time by the user, I have to give the solution based on the thinking directly "
            "now.")


def control_token(spelling):
    added = json.loads((EMBEDDED / "tokenizer.json").read_text())["added_tokens"]
    return next(token["id"] for token in added if token["content"] == spelling)


def ordinary_token(character):
    return json.loads((EMBEDDED / "tokenizer.json").read_text())["model"]["vocab"][character]


def ask(client, **fields):
    """One chat request, at temperature 1 and without thinking unless `fields` say otherwise."""
    known = {"messages": USER, "model": "random", "temperature": 1, "max_tokens": 1200}
    standard = {"messages", "model", "temperature", "max_tokens", "seed", "n", "stream", "stream_options",
                "response_format", "logprobs", "top_logprobs", "logit_bias", "stop"}
    known |= {key: value for key, value in fields.items() if key in standard}
    extra = {"enable_thinking": False, "top_k": 0, "top_p": 1}
    extra |= {key: value for key, value in fields.items() if key not in standard}
    return client.chat.completions.create(**known, extra_body=extra)


def random_schema(dice, depth=0):
    """A schema of bounded size: what it allows always ends within a few hundred tokens."""
    kinds = ["string", "integer", "boolean", "null", "enum", "const", "pattern", "number", "format"]
    kind = dice.choice(kinds + (["object", "array", "anyOf", "tuple"] * 2 if depth < 3 else []))
    if kind == "string":
        return {"type": "string", "minLength": dice.randrange(3), "maxLength": dice.randrange(3, 12)}
    if kind == "integer":
        low = dice.randrange(-1000, 1000)
        return {"type": "integer", "minimum": low, "maximum": low + dice.randrange(1000)}
    if kind == "number":
        return {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "multipleOf": 0.25}
    if kind == "enum":
        return {"enum": dice.sample(["a", "b c", 1, 2.5, None, True, {"k": [1]}, "\u00e9\"\n"], dice.randrange(1, 5))}
    if kind == "const":
        return {"const": dice.choice([7, "x", None, [1, {"y": "z"}]])}
    if kind == "pattern":
        return {"type": "string", "pattern": dice.choice(["^[A-Z]{2}[0-9]{1,3}$", "^(cat|dog)s?$", "^#[0-9a-f]{6}$"])}
    if kind == "format":
        return {"type": "string", "format": dice.choice(["date", "uuid", "ipv4"])}
    if kind == "array":
        low = dice.randrange(2)
        return {"type": "array", "items": random_schema(dice, depth + 1), "minItems": low,
                "maxItems": low + dice.randrange(1, 3)}
    if kind == "tuple":
        return {"type": "array", "prefixItems": [random_schema(dice, depth + 1) for _ in range(2)], "items": False,
                "minItems": 2}
    if kind == "anyOf":
        return {"anyOf": [random_schema(dice, depth + 1), {"type": "null"}]}
    if kind == "object":
        names = dice.sample(["city", "days", "a b", "\u540d", "x_1", "$id2"], dice.randrange(1, 4))
        return {"type": "object", "properties": {name: random_schema(dice, depth + 1) for name in names},
                "required": [name for name in names if dice.random() < 0.7], "additionalProperties": False}
    return {"type": kind}


def test_a_hundred_random_schemas(client):
    dice = random.Random(36)
    schemas = [{"type": "object", "properties": {"v": random_schema(dice), "w": random_schema(dice)},
                "required": ["v"], "additionalProperties": False} for _ in range(100)]

    def answer(index):
        schema = schemas[index]
        reply = ask(client, seed=index, response_format={
            "type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": schema}},
            **({"enable_thinking": True, "thinking_budget": 12} if index % 4 == 0 else {}))
        return index, reply.choices[0]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for index, choice in pool.map(answer, range(len(schemas))):
            assert choice.finish_reason == "stop", (schemas[index], choice)
            jsonschema.validate(json.loads(choice.message.content), schemas[index])
            reasoning = getattr(choice.message, "reasoning_content", None)
            assert bool(reasoning) == (index % 4 == 0)


def test_a_stream_says_the_same_as_a_whole_reply(client):
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 30}, "n": {"enum": [1, 2]}},
              "required": ["name", "n"], "additionalProperties": False}
    fields = {"seed": 5, "enable_thinking": True, "thinking_budget": 20, "response_format": {
        "type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": schema}}}
    whole = ask(client, **fields).choices[0].message
    jsonschema.validate(json.loads(whole.content), schema)
    reasoning, content = "", ""
    for chunk in ask(client, **fields, stream=True):
        reasoning += getattr(chunk.choices[0].delta, "reasoning_content", None) or ""
        content += chunk.choices[0].delta.content or ""
    assert (reasoning, content) == (whole.reasoning_content, whole.content)


def test_json_object_needs_no_word_of_json(client):
    ends = [control_token("<|im_end|>"), ordinary_token('"'), ordinary_token("}")]  # else noise never ends
    reply = ask(client, response_format={"type": "json_object"}, max_tokens=300, seed=1,
                logit_bias={str(token): 50 for token in ends})
    assert isinstance(json.loads(reply.choices[0].message.content), dict)


@pytest.mark.parametrize("fields, pattern", [
    ({"guided_regex": "[A-F]{4}-[0-9]{2}"}, "[A-F]{4}-[0-9]{2}"),
    ({"structured_outputs": {"regex": "(ab|cd){3}"}}, "(ab|cd){3}"),
    ({"guided_choice": ["heron", "stork (white)", "a.b"]}, r"heron|stork \(white\)|a\.b"),
    ({"structured_outputs": {"choice": ["x", "y"]}}, "x|y"),
    ({"guided_grammar": 'start: "<" WORD ">"\nWORD: /[a-z]{3}/'}, "<[a-z]{3}>"),
    ({"guided_json": {"type": "boolean"}}, "true|false"),
    ({"json_schema": {"const": 12}}, "12"),
])
def test_other_spellings(client, http, fields, pattern):
    for seed in range(3):
        choice = ask(client, seed=seed, **fields).choices[0]
        assert choice.finish_reason == "stop"
        assert re.fullmatch(pattern, choice.message.content), choice.message.content
    reply = http.post("/v1/completions", json={"prompt": "Once", "max_tokens": 60, "temperature": 1} | fields)
    assert re.fullmatch(pattern, reply.json()["choices"][0]["text"]), reply.text


def test_every_choice_has_a_grammar_of_its_own(client):
    reply = ask(client, n=3, seed=9, guided_regex="[a-z]{8}")
    texts = [choice.message.content for choice in reply.choices]
    assert all(re.fullmatch("[a-z]{8}", text) for text in texts)
    assert len(set(texts)) == 3


def test_logprobs_are_those_of_the_model(client):
    fields = {"guided_regex": "[0-9]{6}", "logprobs": True, "top_logprobs": 2, "seed": 3}
    entries = ask(client, **fields).choices[0].logprobs.content
    assert "".join(entry.token for entry in entries) == ask(client, **fields).choices[0].message.content
    assert all(-9999.0 < entry.logprob <= 0 for entry in entries)
    assert all(entry.top_logprobs[0].logprob >= entry.logprob for entry in entries)
    # An unconstrained model would rather have said something else.
    assert any(entry.top_logprobs[0].token != entry.token for entry in entries)


@pytest.mark.parametrize("fields", [
    {"guided_json": {"allOf": [{"type": "string", "pattern": f"(a|b)*c{{{i}}}(d|e)*"} for i in range(1, 40)]}},
    {"guided_json": {"type": "object", "required": [f"p{i}" for i in range(20000)]}},
    {"guided_grammar": "start: A\nA: " + " & ".join(f"/(a|b)*c{{{i}}}(d|e)*/" for i in range(1, 40))},
    {"guided_grammar": 'start: %json {"allOf": [' + ", ".join(f'{{"pattern": "(a|b)*c{{{i}}}"}}' for i in range(1, 40)) + "]}"},
])
def test_what_would_take_all_time_or_memory(http, fields):
    reply = http.post("/v1/completions", json={"prompt": "Once", "max_tokens": 2} | fields)
    assert reply.status_code == 400, reply.text
    assert "are allowed" in reply.json()["error"]["message"]


@pytest.mark.parametrize("schema, place", [
    ({"type": "object", "properties": {"a": {"not": {"type": "string"}}}}, "#/properties/a/not"),
    ({"type": "array", "items": {"type": "array", "uniqueItems": True}}, "#/items/uniqueItems"),
])
def test_what_cannot_be_enforced(client, http, schema, place):
    wish = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    strict = {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": schema}}
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as caught:
            ask(client, response_format=strict, stream=stream)
        assert caught.value.code == "invalid_json_schema"
        assert caught.value.param == "response_format.json_schema.schema"
        assert place in str(caught.value)
    reply = http.post("/v1/chat/completions", json={"messages": USER, "max_tokens": 1, "response_format": wish})
    assert reply.headers["x-ignored-params"] == "response_format.json_schema.schema"


def test_a_large_schema_is_refused(client):
    schema = {"enum": ["x" * 1000 + str(i) for i in range(300)]}
    with pytest.raises(openai.BadRequestError, match="262144") as caught:
        ask(client, guided_json=schema)
    assert caught.value.code == "invalid_json_schema"


def test_a_cut_answer_is_cut(client):
    choice = ask(client, guided_regex="[a-z]{2000}", max_tokens=5).choices[0]
    assert choice.finish_reason == "length"
    assert re.fullmatch("[a-z]+", choice.message.content)


def test_constraints_that_exclude_each_other(client, http):
    digit = http.post("/v1/completions", json={"prompt": "x", "max_tokens": 1, "guided_regex": "7",
                                               "return_token_ids": True}).json()["choices"][0]["token_ids"][0]
    fields = {"guided_regex": "[a-z]+", "allowed_token_ids": [digit]}
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, **fields)
    assert "no token may come next" in str(caught.value)
    assert ask(client, guided_regex="[0-9]{3}", allowed_token_ids=[digit]).choices[0].message.content == "777"


# ---- reasoning budgets -----------------------------------------------------------------------------------------------

def reasoning_of(client, **fields):
    """Of a model that never closes its reasoning by itself."""
    never = {str(control_token(token)): -100 for token in ("</think>", "<|im_end|>", "<|endoftext|>")}
    return ask(client, enable_thinking=True, logit_bias=never, seed=11, max_tokens=200, **fields)


@pytest.fixture(scope="module")
def closing_tokens(client):
    """How many tokens the closing sentence and the tag are."""
    return reasoning_of(client, thinking_budget=0).usage.completion_tokens_details.reasoning_tokens


@pytest.mark.parametrize("fields, budget", [
    ({"thinking_token_budget": 64}, 64),
    ({"thinking_budget": 1}, 1),
    ({"reasoning": {"max_tokens": 17}}, 17),
    ({"thinking": {"type": "enabled", "budget_tokens": 33}}, 33),
    ({"chat_template_kwargs": {"thinking_budget": 5}}, 5),
    ({"thinking_budget": 8, "guided_regex": "[0-9]{9}"}, 8),
])
def test_budgets_are_exact(client, closing_tokens, fields, budget):
    reply = reasoning_of(client, **fields)
    message = reply.choices[0].message
    assert reply.usage.completion_tokens_details.reasoning_tokens == budget + closing_tokens
    assert message.reasoning_content.endswith("\n\n" + SENTENCE)
    assert message.content and "Considering" not in message.content and "think>" not in message.content
    assert not message.content.startswith("\n")
    if "guided_regex" in fields:
        assert re.fullmatch(fields["guided_regex"], message.content)


def test_a_budget_is_inside_max_tokens(client):
    reply = reasoning_of(client, **{"thinking_budget": 190})
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 200
    assert reply.usage.completion_tokens_details.reasoning_tokens == 200
    assert reply.choices[0].message.content == ""


def test_no_budget_no_sentence(client):
    for fields in ({"thinking_budget": -1}, {"reasoning_effort": "high"}, {"reasoning_effort": "low"}):
        reply = reasoning_of(client, **fields)
        assert SENTENCE not in reply.choices[0].message.reasoning_content
        assert reply.usage.completion_tokens_details.reasoning_tokens == 200


def test_effort_budgets_of_the_server():
    process = ServerProcess("--context", 512, "--effort-budgets", "3,6,9")
    try:
        with openai.OpenAI(base_url=process.url + "/v1", api_key="any", max_retries=0) as client:
            counts = [reasoning_of(client, reasoning_effort=effort).usage.completion_tokens_details.reasoning_tokens
                      for effort in ("minimal", "low", "medium", "high")]
            closing = reasoning_of(client, thinking_budget=0).usage.completion_tokens_details.reasoning_tokens
            assert counts == [3 + closing, 6 + closing, 9 + closing, 200]
    finally:
        assert process.stop() == 0


def test_the_messages_dialect(http):
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
    body = {"model": "random", "messages": USER, "max_tokens": 200, "temperature": 0,
            "thinking": {"type": "enabled", "budget_tokens": 9}}
    for fields in ({"output_config": {"format": {"type": "json_schema", "schema": schema}}},
                   {"output_format": {"type": "json_schema", "schema": schema}}):
        reply = http.post("/v1/messages", json=body | fields).json()
        thinking, text = reply["content"]
        assert thinking["thinking"].endswith(SENTENCE)
        jsonschema.validate(json.loads(text["text"]), schema)


# ---- words, ids, length ----------------------------------------------------------------------------------------------

def test_min_tokens(client):
    # A model that wants to end at once.
    eager = {str(control_token("<|im_end|>")): 100}
    assert ask(client, logit_bias=eager).usage.completion_tokens == 0
    reply = ask(client, logit_bias=eager, min_tokens=12)
    assert reply.usage.completion_tokens == 12
    assert reply.choices[0].finish_reason == "stop"


def test_bad_words(client):
    plain = ask(client, temperature=0, max_tokens=30, return_token_ids=True)
    word = plain.choices[0].message.content.split()[0]
    reply = ask(client, temperature=0, max_tokens=30, bad_words=[word])
    assert reply.choices[0].message.content.split()[0] != word


def test_allowed_token_ids(client):
    reply = ask(client, allowed_token_ids=[20, 21, 22], max_tokens=40, return_token_ids=True)
    assert set(reply.choices[0].model_extra["token_ids"]) <= {20, 21, 22}
    assert reply.choices[0].finish_reason == "length"
