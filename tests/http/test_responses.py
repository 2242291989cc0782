"""The Responses API through the official client, and as events on the wire."""
import json

import openai
import pytest
from server_process import ServerProcess

RESPONSES = "/v1/responses"
PLAIN = {"model": "random", "input": "Tell me a story.", "temperature": 0, "max_output_tokens": 24}
NO_THINKING = {"reasoning": {"effort": "none"}}
ITEM_KEYS = {"reasoning": ["type", "id", "summary", "content", "encrypted_content", "status"],
             "message": ["type", "id", "role", "content", "status"]}


def events_of(text):
    """The events of a stream as (name, object)."""
    events = []
    for block in text.split("\n\n")[:-1]:
        if not block.startswith(":"):
            name, data = block.split("\n")
            events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


@pytest.mark.parametrize("thinking", [True, False])
def test_response_is_the_chat_answer(client, thinking):
    response = client.responses.create(**PLAIN, **({} if thinking else NO_THINKING))
    chat = client.chat.completions.create(
        model="random", messages=[{"role": "user", "content": PLAIN["input"]}], temperature=0, max_tokens=24,
        extra_body={"enable_thinking": thinking})
    message = chat.choices[0].message
    assert response.output_text == message.content
    reasoning = [item.content[0].text for item in response.output if item.type == "reasoning"]
    assert "".join(reasoning) == (message.model_extra.get("reasoning_content") or "")
    assert response.usage.input_tokens == chat.usage.prompt_tokens
    assert response.usage.output_tokens == chat.usage.completion_tokens
    assert response.usage.output_tokens_details.reasoning_tokens == chat.usage.completion_tokens_details.reasoning_tokens
    assert response.status == ("incomplete" if chat.choices[0].finish_reason == "length" else "completed")


@pytest.mark.parametrize("fields", [{}, NO_THINKING, {"reasoning": {"summary": "auto"}}, {"top_logprobs": 2},
                                    {"include": ["reasoning.encrypted_content"]}])
def test_stream_adds_up_to_the_final_object(http, fields):
    reply = http.post(RESPONSES, json=PLAIN | fields | {"stream": True})
    assert reply.status_code == 200 and reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    events = events_of(reply.text)
    assert [event["sequence_number"] for _, event in events] == list(range(len(events)))
    assert all(name == event["type"] for name, event in events)
    names = [name for name, _ in events]
    assert names[:2] == ["response.created", "response.in_progress"]
    assert names[-1] in ("response.completed", "response.incomplete")
    assert sum(name.split(".")[1] in ("completed", "incomplete", "failed") for name in names) == 1
    final = events[-1][1]["response"]
    assert {event["response"]["id"] for _, event in events if "response" in event} == {final["id"]}

    texts, done = {}, []
    for name, event in events:
        if name.endswith(".delta"):
            texts[event["item_id"]] = texts.get(event["item_id"], "") + event["delta"]
        elif name == "response.output_item.added":
            assert event["output_index"] == len(done) and event["item"]["status"] == "in_progress"
        elif name == "response.output_item.done":
            done.append(event["item"])
    assert done == final["output"] and done
    for item in done:
        assert list(item) == ITEM_KEYS[item["type"]]
        parts = item["content"] or item["summary"]
        assert [part["text"] for part in parts] == [texts[item["id"]]]
    whole = http.post(RESPONSES, json=PLAIN | fields).json()
    assert list(whole) == list(final)
    assert whole["usage"] | {"input_tokens_details": 0} == final["usage"] | {"input_tokens_details": 0}
    assert [[part.get("text") for part in item["content"]] for item in whole["output"]] == \
           [[part.get("text") for part in item["content"]] for item in final["output"]]


@pytest.mark.parametrize("fields", [{}, NO_THINKING])
def test_snapshot_of_the_client_is_the_final_response(client, fields):
    with client.responses.stream(**PLAIN, **fields) as stream:
        text = ""
        for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
                assert event.snapshot == text
            if event.type in ("response.completed", "response.incomplete"):
                final = event.response
    assert final.output_text == text
    assert client.responses.retrieve(final.id).output_text == text


def test_summary_takes_the_place_of_the_reasoning(http):
    plain, summarised = (http.post(RESPONSES, json=PLAIN | fields).json()["output"][0]
                         for fields in ({}, {"reasoning": {"summary": "auto"}}))
    assert summarised["content"] == [] and plain["summary"] == []
    assert summarised["summary"] == [{"type": "summary_text", "text": plain["content"][0]["text"]}]


def test_conversation_by_previous_response_id(client):
    first = client.responses.create(**PLAIN, **NO_THINKING, instructions="Speak plainly.")
    second = client.responses.create(**PLAIN | {"input": "And then?"}, **NO_THINKING, previous_response_id=first.id)
    spelled = client.responses.create(**PLAIN | {"input": [
        {"role": "user", "content": PLAIN["input"]}, *[item.model_dump() for item in first.output],
        {"role": "user", "content": "And then?"}]}, **NO_THINKING)
    assert second.previous_response_id == first.id
    assert second.output_text == spelled.output_text
    assert second.usage.input_tokens == spelled.usage.input_tokens
    counted = client.responses.input_tokens.count(model="random", input="And then?", previous_response_id=first.id,
                                                  reasoning={"effort": "none"})
    assert counted.input_tokens == second.usage.input_tokens
    items = client.responses.input_items.list(second.id).data
    assert [item.content[0].text for item in items] == ["And then?"]


def test_stored_responses(client):
    made = client.responses.create(**PLAIN)
    assert client.responses.retrieve(made.id) == made
    assert client.responses.cancel(made.id) == made
    client.responses.delete(made.id)
    for call in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
        with pytest.raises(openai.NotFoundError):
            call(made.id)
    with pytest.raises(openai.BadRequestError) as error:
        client.responses.create(**PLAIN, previous_response_id=made.id)
    assert error.value.code == "previous_response_not_found"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(client.responses.create(**PLAIN, store=False).id)


def test_a_running_response_can_be_cancelled(client):
    stream = client.responses.create(**PLAIN | {"max_output_tokens": 1500, "stream": True}, extra_body={"ignore_eos": True})
    events = iter(stream)
    response_id = next(events).response.id
    while next(events).type != "response.output_item.added":
        pass
    cancelled = client.responses.cancel(response_id)
    assert cancelled.status == "cancelled"
    last = list(events)[-1]
    assert last.type == "response.incomplete"
    assert last.response == cancelled == client.responses.retrieve(response_id)
    assert cancelled.usage.output_tokens < 1500


def test_reasoning_is_carried_by_the_client(client):
    wanted = PLAIN | {"store": False}
    first = client.responses.create(**wanted, include=["reasoning.encrypted_content"])
    item = first.output[0]
    assert item.type == "reasoning" and item.encrypted_content
    question = {"role": "user", "content": PLAIN["input"]}
    answer = {"role": "assistant", "content": "Once."}
    plain, sealed = ([question, {"type": "reasoning", "id": "x", "summary": [], **kept}, answer]
                     for kept in ({"content": [{"type": "reasoning_text", "text": item.content[0].text}]},
                                  {"encrypted_content": item.encrypted_content}))
    count = client.responses.input_tokens.count
    assert count(input=plain).input_tokens == count(input=sealed).input_tokens > count(input=[question, answer]).input_tokens


def test_what_codex_sends(http):
    """No model, developer items between turns, replayed items of other servers, nothing stored."""
    body = {"input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List the files."}]},
        {"type": "reasoning", "id": "rs_x", "summary": [], "encrypted_content": "gAAAAABforeign"},
        {"type": "function_call", "id": "fc_x", "call_id": "call_1", "name": "shell", "arguments": '{"cmd": "ls'},
        {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin Patch", "status": "completed"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Done!"},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "Fine."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Thanks."}]}],
        "instructions": "You are an agent.", "tools": [{"type": "web_search"}, {"type": "local_shell"}],
        "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": {"effort": "high", "summary": "auto"},
        "store": False, "stream": True, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k",
        "client_metadata": {"a": "b"}, "max_output_tokens": 8}
    reply = http.post(RESPONSES, json=body)
    assert reply.status_code == 200, reply.text
    name, last = events_of(reply.text)[-1]
    assert name in ("response.completed", "response.incomplete")
    assert last["response"]["model"] == "random" and last["response"]["store"] is False
    ignored = reply.headers["x-ignored-params"].split(",")
    assert {"tools[0]", "tools[1]", "input[8]", "client_metadata"} <= set(ignored)


def test_upgrade_is_refused_at_once(server):
    with server.connect() as connection:
        connection.sendall(b"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                           b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 426 ")


@pytest.mark.parametrize("fields, param", [
    ({"background": True}, "background"), ({"conversation": "c"}, "conversation"), ({"prompt": {"id": "p"}}, "prompt"),
    ({"max_output_tokens": -3}, "max_output_tokens"), ({"temperature": 9}, "temperature"), ({"input": 5}, "input"),
    ({"tool_choice": {"type": "web_search"}}, "tool_choice"),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input[0].content[0].file_id"),
    ({"input": [{"type": "item_reference", "id": "msg_0_0"}]}, "input[0].id"),
])
def test_bad_requests_are_bad_request_errors(client, fields, param):
    with pytest.raises(openai.BadRequestError) as error:
        client.responses.create(**PLAIN | fields)
    assert error.value.param == param


def test_responses_belong_to_their_key_and_may_not_be_kept():
    process = ServerProcess("--api-key", "one", "--api-key", "two")
    try:
        one, two = (openai.OpenAI(base_url=process.url + "/v1", api_key=key, max_retries=0) for key in ("one", "two"))
        made = one.responses.create(**PLAIN)
        assert one.responses.retrieve(made.id).id == made.id
        with pytest.raises(openai.NotFoundError):
            two.responses.retrieve(made.id)
    finally:
        assert process.stop() == 0
    process = ServerProcess("--responses-store", "off")
    try:
        client = openai.OpenAI(base_url=process.url + "/v1", api_key="any", max_retries=0)
        made = client.responses.create(**PLAIN)
        assert made.store is False
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(made.id)
    finally:
        assert process.stop() == 0


def test_structured_outputs(client):
    schema = {"type": "object", "properties": {"n": {"type": "boolean"}}, "required": ["n"], "additionalProperties": False}
    wanted = PLAIN | {"max_output_tokens": 200, "text": {"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True}}}
    response = client.responses.create(**wanted, **NO_THINKING)
    assert list(json.loads(response.output_text)) == ["n"]
    assert response.text.format.type == "json_schema" and response.text.format.name == "x"
    with pytest.raises(openai.BadRequestError) as error:
        client.responses.create(**wanted | {"text": {"format": {"type": "json_schema", "name": "x", "strict": True, "schema": {"if": {}}}}})
    assert error.value.code == "invalid_json_schema" and error.value.param.startswith("text.format")


def test_reasoning_budget(client):
    response = client.responses.create(**PLAIN | {"max_output_tokens": 200}, extra_body={"thinking_budget": 16})
    assert response.usage.output_tokens_details.reasoning_tokens < 80
    assert response.output[-1].type == "message"
