"""Requests of every kind whose answers are determined by their bodies, and what of an answer is determined."""
import json
import random

from api_description import stream_events

WORDS = "river stone cloud heron winter copper letter garden silent seven yellow harbour".split()
TOOL = {"name": "look", "description": "Looks around.", "parameters": {
    "type": "object", "properties": {"at": {"enum": ["sea", "sky"]}, "note": {"type": "string", "maxLength": 20}},
    "required": ["at"]}}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
          "required": ["name", "n"], "additionalProperties": False}


def _text(dice, count):
    return " ".join(dice.choice(WORDS) for _ in range(count))


def _turns(dice, shared):
    """Conversations that begin alike: with one of a few system texts, and one with another's first turns."""
    turns = [{"role": "user", "content": dice.choice(shared)}]
    for _ in range(dice.randrange(3)):
        turns.append({"role": "assistant", "content": _text(dice, dice.randrange(1, 30))})
        turns.append({"role": "user", "content": _text(dice, dice.randrange(1, 40))})
    return turns


def _sampling(dice):
    fields = {"temperature": 0} if dice.random() < 0.4 else {"temperature": 1, "seed": dice.randrange(10**6)}
    if dice.random() < 0.2:
        fields |= {"top_k": 20, "presence_penalty": 0.5}
    if dice.random() < 0.2:
        fields["stop"] = dice.sample(list("aeiou ,.\n"), 3)
    if dice.random() < 0.3:
        fields["cache_salt"] = dice.choice(["one", "two"])
    if dice.random() < 0.1:
        fields["priority"] = -1  # few: while better ones keep coming, the others would wait for ever
    return fields


def _constraint(dice):
    return dice.choice([
        {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": SCHEMA}}},
        {"guided_regex": "[a-z]{3,9}-[0-9]{2}"}, {"guided_choice": ["heron", "stork", "crane"]},
        {"guided_grammar": 'start: "<" WORD ">"\nWORD: /[a-z]{3,8}/'}])


def _thinking(dice):
    return dice.choice([{}, {"enable_thinking": False}, {"thinking_budget": 8}])


def _chat(dice, shared):
    body = {"messages": _turns(dice, shared), "max_tokens": dice.randrange(1, 80)} | _sampling(dice) | _thinking(dice)
    kind = dice.random()
    if kind < 0.25:
        body |= _constraint(dice) | {"thinking_budget": 8, "max_tokens": 150}
    elif kind < 0.5:
        body |= {"tools": [{"type": "function", "function": TOOL}], "max_tokens": 150, "thinking_budget": 8,
                 "tool_choice": dice.choice(["auto", "required", "none"])}
    elif kind < 0.65:
        body["n"] = dice.randrange(2, 5)
    elif kind < 0.8:
        body |= {"logprobs": True, "top_logprobs": 2}
    return "/v1/chat/completions", body


def _completion(dice, shared):
    prompt = dice.choice([dice.choice(shared), [dice.randrange(1000) for _ in range(dice.randrange(1, 300))],
                          [dice.choice(shared), _text(dice, 5)]])
    body = {"prompt": prompt, "max_tokens": dice.randrange(1, 60)} | _sampling(dice)
    if dice.random() < 0.3:
        body["logprobs"] = 2
    elif dice.random() < 0.3:
        body |= _constraint(dice)
    return "/v1/completions", body


def _message(dice, shared):
    body = {"messages": _turns(dice, shared), "max_tokens": dice.randrange(1, 80), "system": _text(dice, dice.randrange(1, 60))}
    body |= _sampling(dice)
    body["stop_sequences"] = body.pop("stop", [])
    if dice.random() < 0.4:
        body["thinking"] = {"type": "enabled", "budget_tokens": 16}
    if dice.random() < 0.4:
        body |= {"tools": [{"name": TOOL["name"], "input_schema": TOOL["parameters"]}], "max_tokens": 150,
                 "tool_choice": {"type": dice.choice(["auto", "any"])}}
    return "/v1/messages", body


def _response(dice, shared):
    body = {"input": dice.choice([_text(dice, 20), [*_turns(dice, shared)]]), "max_output_tokens": dice.randrange(1, 80),
            "store": dice.random() < 0.5} | _sampling(dice) | _thinking(dice)
    if dice.random() < 0.4:
        body |= {"tools": [{"type": "function"} | TOOL], "tool_choice": "required", "thinking_budget": 8, "max_output_tokens": 150}
    return "/v1/responses", body


def mixed_requests(seed, count):
    """[(path, body)]."""
    dice = random.Random(seed)
    shared = [_text(dice, size) for size in (3, 40, 150, 300)]
    requests = []
    for _ in range(count):
        path, body = dice.choice([_chat, _chat, _completion, _message, _response])(dice, shared)
        requests.append((path, body | {"model": "any", "stream": dice.random() < 0.6}))
    return requests


def essence(path, reply):
    """What of a complete reply follows from the request alone: no ids, no times, no reuse. None: it was cut off."""
    streamed = reply.headers["content-type"].startswith("text/event-stream")
    data = stream_events(reply.text) if streamed else json.loads(reply.text)
    return _ESSENCES[path](data, streamed)


def _choices(data, streamed):
    if not streamed:
        return _without_ids([data["choices"], data["usage"]["prompt_tokens"], data["usage"]["completion_tokens"]])
    if data[-1:] != ["[DONE]"]:
        return None
    chunks = data[:-1]
    assert all("error" not in chunk for chunk in chunks), chunks[-1]
    choices = {}
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        choices.setdefault(choice["index"], []).append(choice)
    return _without_ids([choices[index] for index in sorted(choices)])


def _message_essence(data, streamed):
    if not streamed:
        return _without_ids([data["content"], data["stop_reason"], data["stop_sequence"], data["usage"]["output_tokens"]])
    if not data or data[-1]["type"] != "message_stop":
        assert not data or data[-1]["type"] != "error", data[-1]
        return None
    return _without_ids([{**event, "usage": None} for event in data if event["type"] not in ("ping", "message_start")])


def _response_essence(data, streamed):
    if not streamed:
        return _without_ids([data["output"], data["status"], data["usage"]["output_tokens"]])
    if not data or data[-1]["type"] not in ("response.completed", "response.incomplete"):
        assert not data or data[-1]["type"] != "response.failed", data[-1]
        return None
    return _without_ids([event.get("delta") or event["type"] for event in data]) + _response_essence(data[-1]["response"], False)


_ESSENCES = {"/v1/chat/completions": _choices, "/v1/completions": _choices, "/v1/messages": _message_essence,
             "/v1/responses": _response_essence}
_RANDOM = {"id", "call_id", "item_id", "signature", "encrypted_content"}


def _without_ids(value):
    if isinstance(value, dict):
        return {key: _without_ids(part) for key, part in value.items() if key not in _RANDOM}
    return [_without_ids(part) for part in value] if isinstance(value, list) else value
