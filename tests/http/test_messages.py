"""The Anthropic dialect, with the official client and with plain requests."""
import json

import anthropic
import pytest
from server_process import ServerProcess

MESSAGES = [{"role": "user", "content": "Tell me a story."}]
ASK = {"model": "random", "max_tokens": 24, "messages": MESSAGES}
GREEDY = ASK | {"temperature": 0}
THINKING = {"type": "enabled", "budget_tokens": 1024}


@pytest.fixture(scope="module")
def claude(server):
    """The Anthropic client, without its own retries: an error must show at once."""
    with anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=0) as made:
        yield made


def create(claude, **fields):
    """The client knows no temperature; the API it was made for takes none from new models."""
    extra = {"temperature": 0} | fields.pop("extra_body", {})
    return claude.messages.create(**ASK | fields, extra_body=extra)


def events(http, body):
    """[(event name, data)] of a stream, and the raw text."""
    reply = http.post("/v1/messages?beta=true", json=body | {"stream": True})
    assert reply.status_code == 200, reply.text
    parsed = []
    for block in reply.text.split("\n\n"):
        if block:
            name, data = block.split("\n")
            parsed.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return parsed, reply.text


def count(http, body):
    reply = http.post("/v1/messages/count_tokens?beta=true", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()["input_tokens"]


def prompt_tokens(usage):
    return usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens


def test_one_text_without_thinking(claude):
    message = create(claude)
    assert [block.type for block in message.content] == ["text"]
    assert message.content[0].text
    assert message.role == "assistant" and message.model == "random"
    assert message.usage.output_tokens_details.thinking_tokens == 0


@pytest.mark.parametrize("thinking", [{"type": "disabled"}, THINKING, {"type": "adaptive"},
                                      {"type": "adaptive", "display": "omitted"}])
def test_stream_accumulates_to_the_whole_message(claude, thinking):
    request = ASK | {"max_tokens": 48, "thinking": thinking, "extra_body": {"temperature": 0}}
    whole = claude.messages.create(**request)
    with claude.messages.stream(**request) as stream:
        streamed = stream.get_final_message()
    assert [block.to_dict() for block in streamed.content] == [
        block.to_dict() | ({"signature": streamed.content[0].signature} if block.type == "thinking" else {})
        for block in whole.content]
    assert streamed.stop_reason == whole.stop_reason
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    assert prompt_tokens(streamed.usage) == prompt_tokens(whole.usage)
    if thinking["type"] != "disabled":
        assert whole.content[0].type == "thinking"
        assert whole.content[0].signature
        assert bool(whole.content[0].thinking) == ("display" not in thinking)


def test_the_events_are_those_of_the_api(http):
    parsed, text = events(http, GREEDY | {"thinking": THINKING})
    assert all(name == data["type"] for name, data in parsed)
    names = [name for name, _ in parsed if name != "ping"]
    assert names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"]
    assert "[DONE]" not in text
    start = parsed[0][1]["message"]
    assert start["content"] == [] and start["stop_reason"] is None
    opened = [data["index"] for name, data in parsed if name == "content_block_start"]
    assert opened == list(range(len(opened)))
    signature = next(i for i, (_, data) in enumerate(parsed) if data.get("delta", {}).get("type") == "signature_delta")
    assert parsed[signature + 1][0] == "content_block_stop"


def test_counts_are_disjoint_and_known_at_the_start(http, claude):
    body = GREEDY | {"system": "Remember this. " * 40, "cache_salt": "disjoint"}
    expected = count(http, body)
    cold, _ = events(http, body)
    warm, _ = events(http, body)
    reads = []
    for parsed in (cold, warm):
        start, end = parsed[0][1]["message"]["usage"], parsed[-2][1]["usage"]
        for usage in (start, end):
            assert (usage["input_tokens"] + usage["cache_creation_input_tokens"]
                    + usage["cache_read_input_tokens"]) == expected
        assert start["cache_read_input_tokens"] == end["cache_read_input_tokens"]
        reads.append(start["cache_read_input_tokens"])
    assert reads[0] == 0 and reads[1] > 64
    counted = claude.messages.count_tokens(model="random", messages=MESSAGES, system=body["system"])
    assert counted.input_tokens == expected


def test_count_tokens_agrees_with_the_other_endpoints(http):
    """The same conversation in both dialects is the same prompt."""
    chat = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi é!"}],
            "enable_thinking": False}
    counted = count(http, {"system": "Be brief.", "messages": chat["messages"][1:]})
    assert http.post("/tokenize", json=chat).json()["count"] == counted
    assert http.post("/v1/chat/completions/input_tokens", json=chat).json() == {
        "object": "response.input_tokens", "input_tokens": counted}
    assert len(http.post("/apply-template", json=chat | {"return_tokens": True}).json()["tokens"]) == counted
    reply = http.post("/v1/chat/completions", json=chat | {"max_tokens": 1}).json()
    assert reply["usage"]["prompt_tokens"] == counted


def test_count_tokens_of_a_long_prompt(http):
    """Longer than the context: counted all the same, and refused with the words that agents look for."""
    body = GREEDY | {"messages": [{"role": "user", "content": "word " * 3000}]}
    counted = count(http, body)
    assert counted > 2048
    reply = http.post("/v1/messages", json=body)
    assert reply.status_code == 400
    assert reply.json()["error"] == {"type": "invalid_request_error",
                                     "message": f"prompt is too long: {counted} tokens > 2048 maximum"}


def test_a_tool_loop_with_parallel_results(http):
    history = [
        {"role": "user", "content": "List both."},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "two calls", "signature": "from another server"},
            {"type": "redacted_thinking", "data": "xxxx"},
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "toolu_1", "name": "list", "input": {"path": "a"}},
            {"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "second", "is_error": True},
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [
                {"type": "text", "text": "first"},
                {"type": "tool_reference", "tool_name": "grep"},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "doc"}}]},
            {"type": "text", "text": "Go on."}]}]
    reply = http.post("/v1/messages", json=GREEDY | {"messages": history, "max_tokens": 4})
    assert reply.status_code == 200, reply.text
    chat = [
        {"role": "user", "content": "List both."},
        {"role": "assistant", "content": "Looking.", "reasoning_content": "two calls", "tool_calls": [
            {"function": {"name": "list", "arguments": {"path": "a"}}},
            {"function": {"name": "list", "arguments": {}}}]},
        {"role": "tool", "content": "first\ngrep\ndoc"},
        {"role": "tool", "content": "Error: second"},
        {"role": "user", "content": "Go on."}]
    assert count(http, {"messages": history}) == http.post(
        "/tokenize", json={"messages": chat, "enable_thinking": False}).json()["count"]


def test_what_agents_send_is_taken(http):
    """Billing lines, system turns, unknown blocks and fields: none may break a session."""
    plain = {"system": "You help.", "messages": MESSAGES}
    noisy = {
        "model": "claude-sonnet-x[1m]", "max_tokens": 4,
        "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=12ab;"},
                   {"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral", "scope": "global"}}],
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": MESSAGES[0]["content"], "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            {"type": "fallback", "from": {"model": "x"}}]}],
        "metadata": {"user_id": "u"}, "context_management": {"edits": []}, "betas": ["x"],
        "output_config": {"effort": "high"}, "speed": "fast"}
    assert count(http, noisy) == count(http, plain)
    reply = http.post("/v1/messages?beta=true", json=noisy, headers={"anthropic-beta": "a,b"})
    assert reply.status_code == 200, reply.text
    assert reply.json()["model"] == "claude-sonnet-x[1m]"
    assert "context_management" in reply.headers["x-ignored-params"]
    with_system_turn = MESSAGES + [{"role": "system", "content": "Now be brief."}]
    assert http.post("/v1/messages", json=GREEDY | {"messages": with_system_turn}).status_code == 200
    assert count(http, {"messages": with_system_turn}) > count(http, {"messages": MESSAGES})


TOOL = {"name": "read", "description": "Read a file.", "input_schema": {
    "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}


def test_tools_are_part_of_the_prompt(http, claude):
    plain = count(http, {"messages": MESSAGES})
    with_tool = count(http, {"messages": MESSAGES, "tools": [TOOL]})
    assert with_tool > plain
    assert count(http, {"messages": MESSAGES, "tools": [TOOL], "tool_choice": {"type": "none"}}) == with_tool
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    assert count(http, {"messages": MESSAGES, "tools": [TOOL, hosted]}) == with_tool
    chat = {"messages": MESSAGES, "enable_thinking": False, "tools": [{"type": "function", "function": {
        "name": "read", "description": TOOL["description"], "parameters": TOOL["input_schema"]}}]}
    assert http.post("/tokenize", json=chat).json()["count"] == with_tool
    message = create(claude, tools=[TOOL, {"type": "bash_20250124", "name": "bash"}])
    assert prompt_tokens(message.usage) > with_tool


@pytest.mark.parametrize("marked", [True, False])
def test_a_marked_block_can_be_reused(http, marked):
    """Up to the mark two prompts are the same; without it nobody knows that it is worth keeping a state there."""
    shared = {"type": "text", "text": "The rules. " * 30}
    if marked:
        shared["cache_control"] = {"type": "ephemeral"}
    reads, created = [], []
    for question in ("one", "two"):
        body = ASK | {"cache_salt": f"mark {marked}", "max_tokens": 1, "system": [
            shared, {"type": "text", "text": f"{question} " * 150}]}
        usage = http.post("/v1/messages", json=body).json()["usage"]
        reads.append(usage["cache_read_input_tokens"])
        created.append(usage["cache_creation_input_tokens"])
        assert reads[-1] + created[-1] + usage["input_tokens"] == count(http, body)
    assert reads[0] == 0
    assert (reads[1] >= 64) is marked
    assert created == ([reads[1], 0] if marked else [0, 0])


def test_a_thinking_budget_is_kept(claude):
    message = create(claude, max_tokens=200, thinking={"type": "enabled", "budget_tokens": 16})
    spent = message.usage.output_tokens_details.thinking_tokens
    assert [block.type for block in message.content][:1] == ["thinking"]
    assert 16 <= spent < 120  # and the sentence that closes the reasoning
    assert message.usage.output_tokens > spent
    unknown = create(claude, thinking={"type": "adaptive"}, extra_body={"output_config": {"effort": "immense"}})
    assert unknown.content[0].type == "thinking"


def test_the_answer_follows_a_schema(http, claude):
    schema = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"],
              "additionalProperties": False}
    form = {"type": "json_schema", "schema": schema}
    for fields in ({"output_config": {"format": form}}, {"output_format": form}):
        message = create(claude, max_tokens=200, extra_body=fields)
        assert isinstance(json.loads(message.content[0].text)["yes"], bool)
    bad = {"type": "json_schema", "schema": {"type": "nonsense"}}
    reply = http.post("/v1/messages", json=ASK | {"output_config": {"format": bad}})
    assert reply.status_code == 200  # as in chat without strict: any object
    assert "output_config.format.schema" in reply.headers["x-ignored-params"]


def test_prefill_goes_on(http, claude):
    prefilled = MESSAGES + [{"role": "assistant", "content": "Once upon"}]
    message = create(claude, messages=prefilled, thinking=THINKING)
    assert [block.type for block in message.content] == ["text"]
    chat = http.post("/v1/chat/completions", json={
        "messages": prefilled, "continue_final_message": True, "max_tokens": 24, "temperature": 0}).json()
    assert message.content[0].text == chat["choices"][0]["message"]["content"]


def test_stops(claude):
    text = create(claude).content[0].text
    stop = text[len(text) // 2:][:3]
    message = create(claude, stop_sequences=[stop])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", stop)
    assert message.content[0].text == text[:text.index(stop)]
    assert create(claude, max_tokens=3).stop_reason == "max_tokens"
    warm = create(claude, max_tokens=0)
    assert (warm.content, warm.stop_reason, warm.usage.output_tokens) == ([], "max_tokens", 0)


@pytest.mark.parametrize("body, words", [
    ({"messages": []}, "messages is empty"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": [{"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": "AA=="}}]}]}, "messages[0].content[0].source.data is an image"),
    ({"thinking": {"type": "sometimes"}}, "thinking.type"),
    ({"extra_body": {"temperature": 3}}, "temperature"),
    ({"stop_sequences": ["x"] * 17}, "stop_sequences")])
def test_bad_requests(claude, body, words):
    with pytest.raises(anthropic.BadRequestError) as caught:
        create(claude, **body)
    assert words in caught.value.message
    assert caught.value.body["type"] == "error"
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert caught.value.body["request_id"] == caught.value.request_id


def test_errors_have_the_client_s_types():
    server = ServerProcess("--context", 512, "--api-key", "secret", "--strict-model")
    try:
        with anthropic.Anthropic(base_url=server.url, api_key="wrong", max_retries=0) as wrong, \
                pytest.raises(anthropic.AuthenticationError) as caught:
            create(wrong)
        assert caught.value.body["error"]["type"] == "authentication_error"
        with anthropic.Anthropic(base_url=server.url, api_key="secret", max_retries=0) as right:
            with pytest.raises(anthropic.NotFoundError):
                create(right, model="claude-x")
            with pytest.raises(anthropic.NotFoundError):
                right.messages.batches.list()
            assert create(right).usage.output_tokens > 0
            models = list(right.models.list())
            assert [model.id for model in models] == ["random"]
            assert right.models.retrieve("random").max_input_tokens == 512
    finally:
        assert server.stop() == 0


def test_conversations_are_not_held_here(http):
    """A client that wants to go on is told so in the words upon which it sends everything."""
    created = http.post("/v1/messages", json=ASK | {"thread": {"type": "create"}})
    assert created.status_code == 200 and created.headers["x-ignored-params"] == "thread"
    more = ASK | {"thread": {"type": "continue", "previous_message_id": created.json()["id"]}}
    lost = http.post("/v1/messages", json=more)
    assert lost.status_code == 404
    assert lost.json()["error"]["type"] == "not_found_error"
    assert lost.json()["error"]["details"] == {"error_code": "thread_not_found"}
    assert http.post("/v1/messages", json=ASK | {"thread": {"type": "fork"}}).status_code == 400
    assert http.post("/v1/messages", json=ASK | {"thread": {}}).status_code == 400
