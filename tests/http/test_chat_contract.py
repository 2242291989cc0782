"""What agents rely on in chat completions: exact keys, ranges, limits, and errors they can act on."""
import json

import httpx
import openai
import pytest
from server_process import ServerProcess

CHAT = "/v1/chat/completions"
BODY = {"messages": [{"role": "user", "content": "Hi"}], "temperature": 0, "max_tokens": 8}
CONTENT = BODY | {"enable_thinking": False}
SOON = {"stop": list(" eaotnirslduc.,\n")}  # ends an answer of any length early


def ask(http, **fields):
    reply = http.post(CHAT, json=CONTENT | fields)
    assert reply.status_code == 200, reply.text
    return reply.json()


def chunks_of(http, **fields):
    reply = http.post(CHAT, json=BODY | fields | {"stream": True})
    assert reply.status_code == 200, reply.text
    events = [block.removeprefix("data: ") for block in reply.text.split("\n\n")[:-1] if not block.startswith(":")]
    assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]


def test_unknown_paths_are_json_errors(http):
    for path in ("/nope", "/v1/nope", "/v1/chat", "/v1/responses/x/y/z/nope", "/v1/chat/completions/extra"):
        reply = http.get(path)
        assert reply.status_code in (404, 405) and isinstance(reply.json()["error"]["message"], str)
    wrong = http.get(CHAT)
    assert wrong.status_code == 405 and wrong.headers["allow"] == "POST, OPTIONS"


def test_unknown_fields_at_every_level(http):
    message = {"role": "user", "content": [{"type": "text", "text": "Hi"} | {f"a{i}": i for i in range(20)}],
               "cache_control": {"type": "ephemeral", "scope": "x"}} | {f"b{i}": {} for i in range(10)}
    reply = http.post(CHAT, json=BODY | {"messages": [message]} | {f"c{i}": [i] for i in range(20)})
    assert reply.status_code == 200
    ignored = reply.headers["x-ignored-params"]
    assert "messages[0].content[0].a0" in ignored and len(ignored) <= 1024


@pytest.mark.parametrize("header", ["Authorization: Bearer K", "x-api-key: K", "api-key: K"])
def test_every_way_to_send_a_key(keyed, http_of_keyed, header):
    name, value = header.split(": ")
    assert http_of_keyed.post(CHAT, json=BODY, headers={name: value}).status_code == 200
    wrong = http_of_keyed.post(CHAT, json=BODY, headers={name: value + "x"})
    assert wrong.status_code == 401 and wrong.json()["error"]["code"] == "invalid_api_key"
    assert http_of_keyed.get("/ready").status_code == 200


@pytest.fixture(scope="module")
def keyed():
    process = ServerProcess("--api-key", "K")
    yield process
    assert process.stop() == 0


@pytest.fixture(scope="module")
def http_of_keyed(keyed):
    with httpx.Client(base_url=keyed.url, timeout=60) as made:
        yield made


def test_web_pages(http):
    wanted = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type, x-a"}
    allowed = http.options(CHAT, headers=wanted | {"Origin": "http://localhost:3000"})
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-origin"] == "http://localhost:3000"
    assert allowed.headers["access-control-allow-headers"] == "content-type, x-a"
    foreign = http.options(CHAT, headers=wanted | {"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in foreign.headers
    assert http.post(CHAT, json=BODY, headers={"Host": "evil.example"}).status_code == 403


def test_request_ids_come_back_on_every_kind_of_reply(http):
    for body in (BODY, BODY | {"stream": True}, {"messages": 1}):
        reply = http.post(CHAT, json=body, headers={"X-Request-Id": "my-id/1"})
        assert reply.headers["x-request-id"] == reply.headers["request-id"] == "my-id/1"


@pytest.mark.parametrize("body", [
    {"messages": []}, {}, {"messages": [{"role": "king", "content": "x"}]}, CONTENT | {"temperature": 3},
    CONTENT | {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]},
    CONTENT | {"functions": []}, CONTENT | {"tool_choice": "required"}, CONTENT | {"logit_bias": {"x": 1}},
    CONTENT | {"messages": [{"role": "user", "content": "word " * 5000}]},
])
def test_deterministic_failures_are_not_retried(server, body):
    """The client retries 408, 409, 429 and 5xx: none of these may be such."""
    with openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=3) as client:
        sent = []
        client._client.event_hooks["request"].append(sent.append)
        with pytest.raises(openai.BadRequestError):
            client.post("/chat/completions", body=body, cast_to=object)
        assert len(sent) == 1


def test_context_limits(http):
    """A prompt that leaves room is answered however much was asked for; one that does not is refused."""
    long = http.post(CHAT, json=CONTENT | {"max_tokens": 32000} | SOON)
    assert long.status_code == 200
    for path, body in ((CHAT, {"messages": [{"role": "user", "content": "word " * 5000}], "max_tokens": 7}),
                       ("/v1/responses", {"input": "word " * 5000, "max_output_tokens": 7})):
        error = http.post(path, json=body)
        assert error.status_code == 400
        detail = error.json()["error"]
        assert detail["code"] == "context_length_exceeded"
        prompt = int(detail["message"].split(" tokens (")[1].split(" in the messages")[0])
        assert detail["message"] == (
            f"This model's maximum context length is 2048 tokens. However, you requested {prompt + 7} tokens "
            f"({prompt} in the messages, 7 in the completion). Please reduce the length of the messages or completion.")


def test_whole_reply_has_exactly_these_keys(http):
    reply = ask(http)
    assert list(reply) == ["id", "object", "created", "model", "system_fingerprint", "choices", "usage"]
    choice = reply["choices"][0]
    assert list(choice) == ["index", "message", "logprobs", "finish_reason", "stop_reason"]
    assert set(choice["message"]) == {"role", "content", "refusal"} and choice["logprobs"] is None
    assert set(reply["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details",
                                   "completion_tokens_details"}


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("usage", [False, True])
def test_order_and_kinds_of_chunks(http, n, usage):
    fields = {"n": n, "temperature": 1, "seed": 3} | ({"stream_options": {"include_usage": True}} if usage else {})
    chunks = chunks_of(http, **fields)
    if usage:
        last = chunks.pop()
        assert last["choices"] == [] and last["usage"]["total_tokens"] > 0
        assert all(chunk["usage"] is None for chunk in chunks)
    else:
        assert all("usage" not in chunk for chunk in chunks)
    for index in range(n):
        mine = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["index"] == index]
        assert mine[0]["delta"] == {"role": "assistant", "content": ""}
        assert mine[-1]["delta"] == {} and mine[-1]["finish_reason"]
        for choice in mine[1:-1]:
            assert choice["finish_reason"] is None and all(choice["delta"].values())
            assert set(choice["delta"]) in ({"content"}, {"reasoning", "reasoning_content"})


def test_length_fields(http):
    assert ask(http, max_tokens=3, max_completion_tokens=5)["usage"]["completion_tokens"] == 5
    for value in (-1, None):
        assert ask(http, max_tokens=value, **SOON)["choices"][0]["finish_reason"] == "stop"
    empty = ask(http, max_tokens=0, messages=[{"role": "user", "content": "count " * 200}])
    assert empty["choices"][0]["finish_reason"] == "length" and empty["choices"][0]["message"]["content"] == ""
    again = ask(http, max_tokens=1, messages=[{"role": "user", "content": "count " * 200}])
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


@pytest.mark.parametrize("field, inside, outside", [
    ("temperature", (0, 2), (-0.01, 2.01)), ("top_p", (0, 1), (-0.01, 1.01)), ("min_p", (0, 1), (-0.01, 1.01)),
    ("top_k", (-1, 0, 1), (-2,)), ("presence_penalty", (-2, 2), (-2.01, 2.01)), ("frequency_penalty", (-2, 2), (-2.01, 2.01)),
    ("repetition_penalty", (0.01, 2), (0, 2.01)), ("n", (1, 2), (0, 9)), ("max_tokens", (-1, 1), (-2,)),
    ("seed", (-(2**63), 2**63 - 1), (2**64,)),
])
def test_borders_of_ranges(http, field, inside, outside):
    for value in inside:
        body = CONTENT | {"max_tokens": 1, field: value} | SOON
        assert http.post(CHAT, json=body).status_code == 200, (field, value)
    for value in outside:
        reply = http.post(CHAT, json=CONTENT | {field: value})
        assert reply.status_code == 400 and reply.json()["error"]["param"] == field, (field, value)


def test_stop_texts_are_for_the_content(http):
    body = {"max_tokens": 40, "return_token_ids": True}
    full = ask(http, **body)["choices"][0]["message"]["content"]
    assert len(full) > 6
    stop = full[3:6]
    cut = ask(http, **body, stop=["", stop])["choices"][0]
    assert cut["message"]["content"] == full[:full.find(stop)]
    assert cut["finish_reason"] == "stop" and cut["stop_reason"] == stop
    assert ask(http, **body, stop=[""])["choices"][0]["message"]["content"] == full
    thinking = http.post(CHAT, json=BODY | {"max_tokens": 40}).json()["choices"][0]["message"]
    part = thinking["reasoning"][3:6]
    again = http.post(CHAT, json=BODY | {"max_tokens": 40, "stop": part}).json()["choices"][0]["message"]
    assert again["reasoning"] == thinking["reasoning"]


def test_logprobs_join_to_the_content(http):
    choice = ask(http, max_tokens=16, logprobs=True, top_logprobs=3, skip_special_tokens=False)["choices"][0]
    entries = choice["logprobs"]["content"]
    assert b"".join(bytes(entry["bytes"]) for entry in entries).decode(errors="replace") == choice["message"]["content"]
    for entry in entries:
        assert -9999.0 <= entry["logprob"] <= 0 and len(entry["top_logprobs"]) == 3
        assert entry["top_logprobs"][0]["logprob"] == max(top["logprob"] for top in entry["top_logprobs"])


def test_sampling_filters_change_the_choice(http):
    """With one candidate left, sampling is greedy; without a filter it is not."""
    greedy = ask(http, max_tokens=16, return_token_ids=True)["choices"][0]["token_ids"]
    hot = {"max_tokens": 16, "temperature": 2, "seed": 1, "return_token_ids": True}
    neutral = {"top_k": 0, "top_p": 1, "min_p": 0, "presence_penalty": 0, "repetition_penalty": 1}
    wild = ask(http, **hot | neutral)["choices"][0]["token_ids"]
    assert wild != greedy
    for narrow in ({"top_k": 1}, {"min_p": 1}, {"top_p": 0}):
        assert ask(http, **hot | neutral | narrow)["choices"][0]["token_ids"] == greedy, narrow
    assert ask(http, **hot | neutral | {"presence_penalty": 2, "frequency_penalty": 2})["choices"][0]["token_ids"] != wild


def test_banned_tokens_do_not_come(http):
    plain = ask(http, max_tokens=24, ignore_eos=True, return_token_ids=True)["choices"][0]["token_ids"]
    banned = ask(http, max_tokens=24, ignore_eos=True, return_token_ids=True, logit_bias={str(plain[0]): -100})
    assert plain[0] not in banned["choices"][0]["token_ids"]
    for key in ("-1", "2000000", "x", "1.5", ""):
        error = http.post(CHAT, json=CONTENT | {"logit_bias": {key: 1}})
        assert error.status_code == 400 and error.json()["error"]["param"] == "logit_bias"


def test_no_tools_are_no_tools(http):
    """An empty list, null and nothing are the same prompt and the same answer."""
    plain = ask(http)
    for tools in ([], None):
        same = ask(http, tools=tools)
        assert same["choices"] == plain["choices"] and same["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"]


@pytest.mark.parametrize("text", ["\u00e9\u6f22\u5b57", "\U0001f469\u200d\U0001f680\U0001f469\U0001f3fd\u200d\U0001f692!",
                                  "\U0001f1eb\U0001f1f7 \u0928\u092e\u0938\u094d\u0924\u0947 e\u0301", "\u200f\u05e9\u05dc\u05d5\u05dd"])
def test_characters_are_never_split(http, text):
    """The model is made to say a text whose characters are several tokens each."""
    wish = {"guided_choice": [text], "max_tokens": 200}
    assert ask(http, **wish)["choices"][0]["message"]["content"] == text
    pieces = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks_of(http, enable_thinking=False, **wish)]
    assert "".join(pieces) == text and "\ufffd" not in "".join(pieces)
    tokens = http.post("/tokenize", json={"prompt": text}).json()["count"]
    assert len(list(filter(None, pieces))) < tokens + 1
    cut = ask(http, **wish | {"max_tokens": 1})["choices"][0]["message"]["content"]
    assert text.startswith(cut.rstrip("\ufffd"))


def test_reasoning_format_of_the_server():
    process = ServerProcess("--reasoning-format", "reasoning")
    try:
        with httpx.Client(base_url=process.url, timeout=60) as http:
            message = http.post(CHAT, json=BODY).json()["choices"][0]["message"]
            assert "reasoning" in message and "reasoning_content" not in message
            both = http.post(CHAT, json=BODY | {"reasoning_format": "both"}).json()["choices"][0]["message"]
            assert both["reasoning"] == both["reasoning_content"] == message["reasoning"]
    finally:
        assert process.stop() == 0
