"""How calls are read out of answers, seen from outside: POST /debug/parse, the text cut everywhere.

The C++ tests of src/api/answer look closer; here the whole way to the reply's JSON is one.
"""
import json

import pytest
from server_process import serving

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}
         for name, properties in {
             "run": {},
             "read": {"path": {"type": "string"}, "limit": {"type": "integer"}, "ratio": {"type": "number"}},
             "write": {"path": {"type": "string"}, "content": {"type": "string"}},
             "set": {"flag": {"type": ["boolean", "null"]}, "name": {"type": ["string", "null"]}, "any": {},
                     "deep": {"anyOf": [{"type": "object"}, {"type": "string"}]}, "level": {"enum": [1, "two", None]},
                     "ref": {"$ref": "#/$defs/count"}, "list": {"type": "array"}}}.items()]
TOOLS[-1]["function"]["parameters"]["$defs"] = {"count": {"type": "integer"}}


def parameter(key, value):
    return f"<parameter={key}>\n{value}\n</parameter>\n"


def block(name, *parameters):
    return f"<tool_call>\n<function={name}>\n{''.join(parameters)}</function>\n</tool_call>"


A, B = parameter("path", "a.py"), parameter("content", "b")
WRITTEN = ("write", '{"path": "a.py", "content": "b"}')
OPEN = "<tool_call>\n<function=write>\n"

# name -> text, content, calls
CALLS = {
    "plain": (block("run"), None, [("run", "{}")]),
    "without line breaks": ("<tool_call><function=read><parameter=path>a</parameter></function></tool_call>", None,
                            [("read", '{"path": "a"}')]),
    "blanks around names": ("<tool_call>\n<function = read >\n<parameter\t= path >\nx\n</parameter>\n</function>\n</tool_call>", None,
                            [("read", '{"path": "x"}')]),
    "three with text before": (f"Look.\n\n{block('run')}\n{block('read', A)}\n\n{block('run')}\n", "Look.",
                               [("run", "{}"), ("read", '{"path": "a.py"}'), ("run", "{}")]),
    "text after": (f"{block('run')}\n\nDone.", "Done.", [("run", "{}")]),
    "json form": ('<tool_call>\n{"name": "read", "arguments": {"path":"é","limit":7}}\n</tool_call>', None,
                  [("read", '{"path": "é", "limit": 7}')]),
    "bare function": ("<function=read>\n" + A + "</function>\n</tool_call>", None, [("read", '{"path": "a.py"}')]),
    "undeclared but perfect": (block("nothing", parameter("a", "1")), None, [("nothing", '{"a": "1"}')]),
    "undeclared and broken": ("<tool_call>\n<function=nothing>\njunk", "<tool_call>\n<function=nothing>\njunk", []),
    "quoted in a line": ("The tag <tool_call> opens a call.", "The tag <tool_call> opens a call.", []),
    "in a fence": (f"```\n{block('run')}\n```", f"```\n{block('run')}\n```", []),
    "after a fence": (f"```\ncode\n```\n{block('run')}", "```\ncode\n```", [("run", "{}")]),
    "missing end of a value": (OPEN + "<parameter=path>\na.py\n" + B + "</function>\n</tool_call>", None, [WRITTEN]),
    "missing end of the function": (OPEN + A + B + "</tool_call>", None, [WRITTEN]),
    "missing end of the call": (OPEN + A + B + "</function>", None, [WRITTEN]),
    "missing ends": (OPEN + A + B, None, [WRITTEN]),
    "next opener ends": (OPEN + A + B + OPEN + A + B + "</function>\n</tool_call>", None, [WRITTEN, WRITTEN]),
    "broken element": (block("write", "<parameter=\nx\n</parameter>\n", A, "<parameter=ids: [1\n</parameter>\n", B), None, [WRITTEN]),
    "repeated key": (block("write", A, B, parameter("path", "second")), None, [WRITTEN]),
}

VALUES = ["a </parameter> b", "x\n</parameter>\ny", "</function>", "line\n</tool_call>\nmore", "<parameter=x>1</parameter> text",
          "<parameter=content>\nself\n</parameter>\nz", "&amp; &lt;\ttab  ", "\r\nCRLF\r\n", "\n\nblank\n\n", "  spaces  ", "é\U0001f600",
          '"quotes" \\ \x01', "<", "</param"]

# key of `set` or `read` -> text of the value -> JSON
COERCIONS = [
    ("read", "path", "03106", '"03106"'), ("read", "path", "null", '"null"'), ("read", "path", '{"a":1}', '"{\\"a\\":1}"'),
    ("read", "limit", "5", "5"), ("read", "limit", "5.0", "5"), ("read", "limit", "123456789012345678901234567890", "123456789012345678901234567890"),
    ("read", "limit", "many", '"many"'), ("read", "ratio", "-1.5e3", "-1.5e3"), ("set", "flag", "True", "true"),
    ("set", "flag", "false", "false"), ("set", "flag", "null", "null"), ("set", "name", "null", "null"), ("set", "name", "nothing", '"nothing"'),
    ("set", "any", "[1, 2]", "[1, 2]"), ("set", "any", "12", '"12"'), ("set", "deep", "{'a': True}", '{"a": true}'),
    ("set", "deep", "text", '"text"'), ("set", "level", "1", "1"), ("set", "level", "two", '"two"'), ("set", "ref", "7", "7"),
    ("set", "list", "[None, 'x']", '[null, "x"]'),
]


@pytest.fixture(scope="module")
def parser():
    with serving("--enable-debug", "--threads", 1, "--log-level", "warning") as client:
        def parse(chunks, **fields):
            reply = client.post("/debug/parse", json={"chunks": chunks, "tools": TOOLS} | fields)
            assert reply.status_code == 200, reply.text
            return reply.json()
        yield parse


def calls_of(parsed):
    return [(call["function"]["name"], call["function"]["arguments"]) for call in parsed["message"].get("tool_calls", [])]


def arguments_of(deltas):
    """The arguments of each call, put together from the deltas."""
    arguments = {}
    for delta in deltas:
        for call in delta.get("tool_calls", []):
            arguments[call["index"]] = arguments.get(call["index"], "") + call["function"]["arguments"]
    return [arguments[index] for index in sorted(arguments)]


def cuts(text):
    """The whole, every character alone, and the text in two."""
    yield [text]
    yield list(text)
    for at in range(1, len(text), max(len(text) // 12, 1)):
        yield [text[:at], text[at:]]


@pytest.mark.parametrize("name", CALLS)
def test_calls(parser, name):
    text, content, calls = CALLS[name]
    for chunks in cuts(text):
        parsed = parser(chunks)
        assert parsed["message"]["content"] == content and calls_of(parsed) == calls
        assert parsed["finish_reason"] == ("tool_calls" if calls else "stop")
        assert arguments_of(parsed["deltas"]) == [arguments for _, arguments in calls]
        assert "".join(delta.get("content", "") for delta in parsed["deltas"]) == (content or "")


@pytest.mark.parametrize("value", VALUES)
def test_values_come_back_byte_for_byte(parser, value):
    for chunks in cuts(block("write", A, parameter("content", value))):
        ((_, arguments),) = calls_of(parser(chunks))
        assert json.loads(arguments) == {"path": "a.py", "content": value}


@pytest.mark.parametrize("tool, key, text, expected", COERCIONS)
def test_values_of_every_type(parser, tool, key, text, expected):
    for chunks in cuts(block(tool, parameter(key, text))):
        assert calls_of(parser(chunks)) == [(tool, f'{{"{key}": {expected}}}')]


def test_calls_inside_reasoning(parser):
    for chunks in cuts("I look.\n" + block("run")):
        parsed = parser(chunks, thinking_open=True)
        assert parsed["message"]["reasoning"] == "I look." and calls_of(parsed) == [("run", "{}")]
    for quoted in ("I could use <tool_call>.", "```\n<tool_call>\n<function=run>"):
        for chunks in cuts(quoted + "\n</think>\n\nHi"):
            parsed = parser(chunks, thinking_open=True)
            assert (parsed["message"]["reasoning"], parsed["message"]["content"], calls_of(parsed)) == (quoted, "Hi", [])


def test_a_cut_call_stays_open(parser):
    text = block("write", A, parameter("content", "long text"))
    whole = calls_of(parser([text]))[0][1]
    for size in range(0, len(text), 3):
        parsed = parser([text[:size]], finish="length")
        assert parsed["finish_reason"] == "length"
        for _, arguments in calls_of(parsed):
            assert whole.startswith(arguments)
            with pytest.raises(json.JSONDecodeError):
                json.loads(arguments)


def test_strings_are_streamed(parser):
    deltas = parser(["<tool_call>\n<function=write>\n<parameter=content>\n", *["word "] * 2000], finish="length")["deltas"]
    assert len(deltas) > 2000
    assert arguments_of(deltas) == ['{"content": "' + "word " * 2000]


def test_calls_switched_off(parser):
    for fields in ({"tools": []}, {"tool_choice": "none"}):
        parsed = parser([block("run")], **fields)
        assert parsed["message"]["content"] == block("run") and not calls_of(parsed)
    assert len(calls_of(parser([block("run") + block("run")], parallel_tool_calls=False))) == 1
