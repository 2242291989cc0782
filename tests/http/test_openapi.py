"""docs/openapi.json against the program: routes, fields and replies, both ways."""
import json
import re
import subprocess

import pytest
from api_description import (DESCRIPTION, FILE, check_reply, find_operation, operations, properties_of, request_schema,
                             resolve, stream_events)
from openapi_spec_validator import validate as validate_description
from scrape import Scrape
from server_process import SLUICE, serving
from test_data import ROOT

MESSAGES = [{"role": "user", "content": "Hello!"}]
TOOL = {"name": "look", "description": "Looks.", "parameters": {
    "type": "object", "properties": {"at": {"enum": ["sea", "sky"]}}, "required": ["at"]}}
# The least each body needs.
LEAST = {
    "/chat/completions": {"messages": MESSAGES, "max_tokens": 2},
    "/chat/completions/input_tokens": {"messages": MESSAGES},
    "/completions": {"prompt": "Hello", "max_tokens": 2},
    "/responses": {"input": "Hello", "max_output_tokens": 2, "store": False},
    "/responses/input_tokens": {"input": "Hello"},
    "/messages": {"messages": MESSAGES, "max_tokens": 2},
    "/messages/count_tokens": {"messages": MESSAGES},
    "/tokenize": {"prompt": "Hello"},
    "/detokenize": {"tokens": [5]},
    "/apply-template": {"messages": MESSAGES},
    "/debug/parse": {"text": "Hello"},
    "/cache/flush": {}, "/flush_cache": {}, "/reset_prefix_cache": {},
    "/cache/pins": {"token_ids": list(range(64))},
    "/cache/save": {"name": "x"}, "/cache/load": {"name": "x"},
}


@pytest.fixture(scope="module")
def debuggable(tmp_path_factory):
    """A server with every route there is, and a cache file to load."""
    with serving("--enable-debug", "--threads", 1, "--cache-dir", tmp_path_factory.mktemp("cache")) as client:
        assert client.post("/v1/cache/save", json=LEAST["/cache/load"]).status_code == 200
        yield client


def ask(client, method, path, **options):
    reply = client.request(method, path, **options)
    check_reply(method, path, reply.status_code, reply.headers, reply.content.decode())
    return reply


# ---- the description itself ------------------------------------------------------------------------------------------

def test_it_is_a_valid_description(http):
    validate_description(DESCRIPTION)
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(names) == len(set(names))
    version = subprocess.run([SLUICE, "--version"], capture_output=True, text=True, check=True).stdout
    assert DESCRIPTION["info"]["version"] in version.split("\n")[0]


def test_the_server_serves_it(http):
    assert http.get("/openapi.json").text == FILE.read_text()
    assert http.get("/v1/openapi.json").json() == DESCRIPTION


def test_every_part_is_used():
    used = set(re.findall(r'"#/components/([^"]+)"', FILE.read_text()))
    there = {f"{kind}/{name}" for kind, parts in DESCRIPTION["components"].items() for name in parts}
    assert there - used == {f"securitySchemes/{name}" for name in ("bearer", "x-api-key", "api-key")}


# ---- routes ----------------------------------------------------------------------------------------------------------

def test_routes_are_the_server_s(debuggable):
    """The metrics name every route; a method that nobody answers gets the list of those that are answered."""
    samples = Scrape(debuggable).families["http_requests"].samples
    routes = {sample.labels["handler"] for sample in samples} - {"(unknown)"}
    served = {}
    for route in sorted(routes, key=len):  # what stands below another comes after it
        variable = route.rstrip("/") + "/x"
        below = any(variable.startswith(path.removesuffix("x")) for path in served if path.endswith("/x"))
        for path in (route,) if below else (route, variable):
            reply = debuggable.request("PATCH", path)
            if reply.status_code == 405:
                allowed = set(reply.headers["allow"].split(", ")) - {"OPTIONS", "HEAD"}
                served.setdefault(path, set()).update(allowed)
    described = {}
    for path, method, _ in operations():
        one = re.sub(r"\{\w+\}.*", "x", path)
        described.setdefault(one, set()).add(method.upper())
    assert served == described


def test_what_is_not_described_is_not_there(debuggable):
    for path, item in DESCRIPTION["paths"].items():
        for method in {"get", "post", "delete"} - set(item):
            reply = debuggable.request(method, path.replace("{response_id}", "x").replace("{model_id}", "x"))
            assert reply.status_code in (404, 405), (method, path)


# ---- fields of requests ----------------------------------------------------------------------------------------------

def read_names():
    """Names of fields that the program reads somewhere, as its sources say it."""
    reading = re.compile(r'(?:\.|->)(?:string|boolean|integer|number|array|object|find|has)\("(\w+)"\)'
                         r'|(?:required_string|read_float|read_budget|read_effort)\(\*?\w+, "(\w+)"')
    ranged = re.compile(r'(?:\.|->)(?:integer|number)\("(\w+)",')
    names = set()
    for source in (ROOT / "src" / "api").rglob("*.cpp"):
        if not source.stem.endswith("_test"):
            text = source.read_text(encoding="utf-8")
            names |= {name for match in reading.findall(text) for name in match if name} | set(ranged.findall(text))
    return names


def described_names(schema, found):
    """Names of all fields at any depth."""
    if isinstance(schema, dict):
        found |= set(schema.get("properties", {}))
        for part in schema.values():
            described_names(part, found)
    elif isinstance(schema, list):
        for part in schema:
            described_names(part, found)
    return found


# Read below what the description calls "other blocks", "other items" or JSON Schema; or not a field of a body.
NOT_DESCRIBED = {"tool", "definition", "tool_name", "additional_tools"}


def test_every_field_that_is_read_is_described():
    names = read_names()
    assert {"messages", "temperature", "cache_salt", "max_tokens", "tool_use_id", "thinking_budget"} <= names
    assert names - described_names(DESCRIPTION, set()) <= NOT_DESCRIBED


def example(schema):
    """A value that the schema allows and that is not null."""
    schema = resolve(schema)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return next(value for value in schema["enum"] if value is not None)
    for part in ("anyOf", "oneOf", "allOf"):
        if part in schema:
            return example(schema[part][0])
    kinds = schema.get("type", "object")
    kind = next(kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null")
    if kind == "object":
        needed = schema.get("properties", {})
        return {name: example(needed[name]) for name in schema.get("required", ())}
    if kind == "array":
        return [example(schema["items"])] * schema.get("minItems", 0)
    if kind == "string":
        return "x" * max(schema.get("minLength", 1), 1)
    if kind == "boolean":
        return True
    return max(schema.get("minimum", 1), 1)


# Described as ignored, or given another meaning by another field.
WITHOUT_EFFECT = {("/messages", "thread"), ("/messages/count_tokens", "thread"), ("/messages", "n"), ("/messages/count_tokens", "n"), ("/responses", "stream_options"),
                  ("/responses/input_tokens", "stream_options"), ("/responses", "return_token_ids"),
                  ("/responses/input_tokens", "return_token_ids"), ("/responses", "response_format"),
                  ("/responses/input_tokens", "response_format")}


def body_fields():
    for path, method, operation in operations():
        schema = request_schema(operation)
        if schema is not None and method == "post":
            yield path, properties_of(schema)


@pytest.mark.parametrize("path, fields", [pytest.param(path, fields, id=path) for path, fields in body_fields()])
def test_every_described_field_is_read(debuggable, path, fields):
    """Either it is not among the ignored, or it is what an error is about."""
    for name, schema in fields.items():
        body = {"stream": True} if name == "stream_options" else {}
        if path == "/tokenize" and name not in ("prompt", "content", "with_pieces", "return_token_strs", "parse_special",
                                                "add_special_tokens"):
            body["messages"] = MESSAGES
        body |= {name: example(schema)}
        if name == "max_tokens":
            body[name] = 2
        reply = ask(debuggable, "POST", path, json=LEAST[path] | body)
        ignored = reply.headers.get("x-ignored-params", "").split(",")
        if (path, name) in WITHOUT_EFFECT:
            assert name in ignored, name
        elif reply.status_code in (200, 201):
            assert name not in ignored, name
        else:
            assert reply.status_code == 400 and name in json.dumps(reply.json()), (name, reply.text)


def test_wrong_types_are_errors_that_name_the_field(debuggable):
    wrong = {"integer": "1", "number": "1", "boolean": "true", "string": 5, "array": "x", "object": "x"}
    for path, fields in body_fields():
        for name, schema in fields.items():
            kinds = resolve(schema).get("type", ())
            kinds = {kinds} if isinstance(kinds, str) else set(kinds)
            if len(kinds - {"null"}) != 1 or (path, name) in WITHOUT_EFFECT or name == "messages":
                continue
            body = {"stream": True} if name == "stream_options" else {}
            if path == "/tokenize" and name in properties_of({"$ref": "#/components/schemas/ChatRequest"}):
                body["messages"] = MESSAGES
            least = {} if name == "chunks" else LEAST[path]  # it yields to text
            (kind,) = kinds - {"null"}
            reply = ask(debuggable, "POST", path, json=least | body | {name: wrong[kind]})
            assert reply.status_code == 400 and name in reply.text, (path, name, reply.text)
            without = {key: value for key, value in (least | body).items() if key != name}
            statuses = [ask(debuggable, "POST", path, json=without | null).status_code for null in ({}, {name: None})]
            assert statuses[0] == statuses[1] or statuses == [201, 200], (path, name)  # once made it is there


def test_borders_of_every_described_range(debuggable):
    """What is just inside is taken, what is just outside is an error about the field."""
    tried = 0
    for path, fields in body_fields():
        for name, schema in fields.items():
            schema = resolve(schema)
            whole = "integer" in schema.get("type", ())
            step = 1 if whole else 0.001
            for border, sign in (("minimum", -1), ("exclusiveMinimum", -1), ("maximum", 1)):
                if border not in schema or (path, name) in WITHOUT_EFFECT or abs(schema[border]) > 2**60:
                    continue
                beside = {"n": {"best_of": None}, "best_of": {"n": schema[border]}, "top_logprobs": {"logprobs": True}}.get(name, {})
                if path.startswith("/responses") and name in ("n", "best_of"):
                    continue  # one answer, whatever the range
                outside = schema[border] if border == "exclusiveMinimum" else schema[border] + sign * step
                body = LEAST[path] | beside | ({"messages": MESSAGES} if path == "/tokenize" else {})
                inside = schema[border] if border != "exclusiveMinimum" else schema[border] + step
                small = {"stop": list(" eaotinsrl,.\n"), "max_tokens": 2, "max_output_tokens": 2}
                taken = ask(debuggable, "POST", path, json=small | body | {name: inside})
                assert taken.status_code in ((200, 504) if name == "timeout" else (200, 201)), (path, name, inside, taken.text)
                refused = ask(debuggable, "POST", path, json=body | {name: outside})
                assert refused.status_code == 400 and name in refused.text, (path, name, outside, refused.text)
                tried += 1
    assert tried > 100


# ---- replies ---------------------------------------------------------------------------------------------------------

CHAT = {"messages": MESSAGES, "max_tokens": 24, "seed": 3, "temperature": 1}
FORCED = {"tools": [{"type": "function", "function": TOOL}], "tool_choice": "required", "thinking_budget": 4, "max_tokens": 200}
CHAT_BODIES = [
    CHAT, CHAT | {"n": 3}, CHAT | {"logprobs": True, "top_logprobs": 3, "thinking_budget": 4, "max_tokens": 60},
    CHAT | {"timings": True, "return_token_ids": True}, CHAT | {"enable_thinking": False, "stop": list("aeiou ")},
    CHAT | FORCED, CHAT | FORCED | {"max_tokens": 40}, CHAT | {"max_tokens": 0}, CHAT | {"reasoning_format": "none"},
    CHAT | {"reasoning_format": "reasoning"}, CHAT | {"include_reasoning": False}, CHAT | {"stop_token_ids": list(range(1000))[::7]},
]
COMPLETION = {"prompt": "Once", "max_tokens": 12, "seed": 3, "temperature": 1}
COMPLETION_BODIES = [
    COMPLETION, COMPLETION | {"prompt": ["a", "b"], "n": 2}, COMPLETION | {"prompt": [[5, 6], [7]], "logprobs": 2},
    COMPLETION | {"echo": True, "timings": True, "return_token_ids": True}, COMPLETION | {"stop": list("aeiou ")},
]
RESPONSE = {"input": "Hello", "max_output_tokens": 24, "seed": 3, "temperature": 1}
RESPONSE_FORCED = {"tools": [{"type": "function"} | TOOL], "tool_choice": "required", "thinking_budget": 4, "max_output_tokens": 200}
RESPONSE_BODIES = [
    RESPONSE, RESPONSE | {"reasoning": {"summary": "auto"}}, RESPONSE | RESPONSE_FORCED, RESPONSE | RESPONSE_FORCED | {"max_output_tokens": 40},
    RESPONSE | {"include": ["reasoning.encrypted_content", "message.output_text.logprobs"], "top_logprobs": 2,
                "thinking_budget": 4, "max_output_tokens": 60},
    RESPONSE | {"thinking_budget": 4, "max_output_tokens": 300, "tool_choice": {"type": "custom", "name": "edit"},
                "tools": [{"type": "custom", "name": "edit", "description": "Edits."}]},
    RESPONSE | {"reasoning": {"effort": "none"}, "metadata": {"a": "b"}, "instructions": "Be brief.", "store": False},
]
MESSAGE = {"model": "m", "messages": MESSAGES, "max_tokens": 24, "seed": 3, "temperature": 1}
MESSAGE_FORCED = {"tools": [{"name": "look", "input_schema": TOOL["parameters"]}], "tool_choice": {"type": "any"}, "max_tokens": 200}
MESSAGE_BODIES = [
    MESSAGE, MESSAGE | {"thinking": {"type": "enabled", "budget_tokens": 4}, "max_tokens": 60}, MESSAGE | {"max_tokens": 0},
    MESSAGE | {"thinking": {"type": "adaptive", "display": "omitted"}}, MESSAGE | MESSAGE_FORCED, MESSAGE | MESSAGE_FORCED | {"max_tokens": 12},
    MESSAGE | {"stop_sequences": list("aeiou ")}, MESSAGE | {"system": [{"type": "text", "text": "word " * 100, "cache_control": {}}]},
]


@pytest.mark.parametrize("path, bodies", [
    ("/v1/chat/completions", CHAT_BODIES), ("/v1/completions", COMPLETION_BODIES), ("/v1/responses", RESPONSE_BODIES),
    ("/v1/messages", MESSAGE_BODIES)])
def test_answers_whole_and_streamed(debuggable, path, bodies):
    for body in bodies:
        whole = ask(debuggable, "POST", path, json=body)
        assert whole.status_code == 200, whole.text
        for options in ({}, {"stream_options": {"include_usage": True}}, {"stream_options": {"continuous_usage_stats": True}}):
            streamed = ask(debuggable, "POST", path, json=body | options | {"stream": True})
            assert streamed.status_code == 200 and len(stream_events(streamed.text)) > 1
            if path in ("/v1/responses", "/v1/messages"):
                break  # they have no such options


def test_a_conversation_with_calls(debuggable):
    """The answer of a forced call goes back with its result, in all three dialects."""
    message = ask(debuggable, "POST", "/v1/chat/completions", json=CHAT | FORCED).json()["choices"][0]["message"]
    (call,) = message["tool_calls"][:1]
    history = [*MESSAGES, message, {"role": "tool", "tool_call_id": call["id"], "content": "Waves."}]
    assert ask(debuggable, "POST", "/v1/chat/completions", json=CHAT | {"messages": history}).status_code == 200

    blocks = ask(debuggable, "POST", "/v1/messages", json=MESSAGE | MESSAGE_FORCED).json()["content"]
    result = {"type": "tool_result", "tool_use_id": blocks[-1]["id"], "content": [{"type": "text", "text": "Waves."}]}
    history = [*MESSAGES, {"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
    assert ask(debuggable, "POST", "/v1/messages", json=MESSAGE | {"messages": history}).status_code == 200

    first = ask(debuggable, "POST", "/v1/responses", json=RESPONSE | RESPONSE_FORCED).json()
    item = {"type": "function_call_output", "call_id": first["output"][-1]["call_id"], "output": "Waves."}
    second = ask(debuggable, "POST", "/v1/responses", json=RESPONSE | {"input": [item], "previous_response_id": first["id"]})
    assert second.status_code == 200
    for path in (f"/v1/responses/{first['id']}", f"/v1/responses/{second.json()['id']}/input_items",
                 f"/v1/responses/{first['id']}/input_items?order=asc"):
        assert ask(debuggable, "GET", path).status_code == 200
    assert ask(debuggable, "POST", f"/v1/responses/{first['id']}/cancel").status_code == 200
    assert ask(debuggable, "DELETE", f"/v1/responses/{first['id']}").status_code == 200
    assert ask(debuggable, "GET", f"/v1/responses/{first['id']}").status_code == 404


def test_everything_without_a_body(debuggable):
    for path, method, operation in operations():
        if method == "get" and "{" not in path:
            assert ask(debuggable, "GET", path).status_code == 200, path
    assert ask(debuggable, "GET", "/v1/models/random").status_code == 200
    assert ask(debuggable, "GET", "/v1/models/a/b").status_code == 404


def test_utilities(debuggable):
    for path, bodies in {
        "/tokenize": [{"prompt": "é"}, {"content": "\U0001f469\u200d\U0001f680", "with_pieces": True, "return_token_strs": True},
                      {"messages": MESSAGES}],
        "/detokenize": [{"tokens": [5, 6]}, {"tokens": []}],
        "/apply-template": [{"messages": MESSAGES}, {"messages": MESSAGES, "return_tokens": True}],
        "/debug/parse": [{"text": "x</think>y", "thinking_open": True},
                         {"chunks": ["<tool_call><function=look><parameter=at>s", "ky</parameter></function></tool_call>"],
                          "tools": [TOOL]},
                         {"text": "<tool_call><function=look><parameter=at>s", "tools": [TOOL], "finish": "length"}],
        "/v1/cache/flush": [{}, {"scope": "all"}, {"scope": "unpinned"}, {"scope": "salt", "cache_salt": "x"}],
    }.items():
        for body in bodies:
            assert ask(debuggable, "POST", path, json=body).status_code == 200, (path, body)


def test_pins(debuggable):
    body = {"prompt": "word " * 200, "name": "words", "ttl_s": 3600}
    made = ask(debuggable, "POST", "/v1/cache/pins", json=body)
    assert made.status_code == 201
    assert ask(debuggable, "POST", "/v1/cache/pins", json=body).status_code == 200
    path = f"/v1/cache/pins/{made.json()['id']}"
    assert [ask(debuggable, method, path).status_code for method in ("GET", "DELETE", "GET", "DELETE")] == [200, 200, 404, 404]


def test_errors():
    """Of every class that a request can meet, in both forms."""
    with serving("--api-key", "K", "--strict-model", "--threads", 1) as client:
        key = {"x-api-key": "K"}
        for path in ("/v1/chat/completions", "/v1/messages"):
            body = {"model": "random", "messages": MESSAGES}
            assert ask(client, "POST", path, json=body).status_code == 401
            assert ask(client, "POST", path, json=body, headers=key | {"host": "evil.example"}).status_code in (200, 403)
            assert ask(client, "POST", path, json=body | {"model": "x"}, headers=key).status_code == 404
            assert ask(client, "POST", path, content=b"{", headers=key).status_code == 400
            assert ask(client, "POST", path, json=body, headers=key | {"content-encoding": "zstd"}).status_code == 415
            late = ask(client, "POST", path, json=body | {"ignore_eos": True, "timeout": 0.05}, headers=key)
            assert late.status_code == 504
        assert ask(client, "GET", "/v1/cache", headers=key | {"x-forwarded-for": "1.2.3.4"}).status_code == 403


def test_a_full_queue():
    with serving("--sequences", 1, "--queue", 1, "--threads", 1) as client:
        body = {"messages": MESSAGES, "ignore_eos": True, "stream": True}
        with client.stream("POST", "/v1/chat/completions", json=body), client.stream("POST", "/v1/chat/completions", json=body):
            for path in ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"):
                full = ask(client, "POST", path, json=LEAST[path.removeprefix("/v1")])
                assert full.status_code == 429 and full.headers["retry-after"] == "1"


def test_the_check_finds_mistakes():
    """What check_reply() is for."""
    good = {"content-type": "application/json"}
    check_reply("GET", "/live", 200, good, '{"status":"ok","model":"m"}')
    for status, headers, text in ((200, good, '{"status":"ok"}'), (200, good, '{"status":"ok","model":"m","more":1}'),
                                  (500, good, "{}"), (200, {"content-type": "text/html"}, "")):
        with pytest.raises(Exception):
            check_reply("GET", "/live", status, headers, text)
    assert find_operation("GET", "/v1/models/a/b")["operationId"] == "getModel"
    assert find_operation("POST", "/responses/input_tokens/")["operationId"] == "countResponseTokens"
