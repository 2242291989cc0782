"""What conversations agents send become as prompts: nothing that a client may hold in its history is an error."""
import pytest

CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "Question?"}


def prompt(http, messages, **fields):
    reply = http.post("/apply-template", json={"messages": messages} | fields)
    assert reply.status_code == 200, reply.text
    return reply.json()["prompt"]


def assistant(**fields):
    return {"role": "assistant", "content": "Answer."} | fields


def test_system_messages_anywhere(http):
    """Each stands in the prompt once, where it was, and what comes before it stays the same."""
    for messages in (
            [{"role": "system", "content": "SYS-A"}, {"role": "system", "content": "SYS-B"}, USER],
            [{"role": "developer", "content": "SYS-A"}, USER], [USER, {"role": "system", "content": "SYS-A"}, USER],
            [USER, assistant(), {"role": "developer", "content": "SYS-A"}]):
        text = prompt(http, messages)
        said = [word for word in ("SYS-A", "SYS-B") if any(word in message["content"] for message in messages)]
        assert all(text.count(word) == 1 for word in said)
        assert http.post(CHAT, json={"messages": messages, "max_tokens": 1}).status_code == 200
    head = [USER, assistant(), {"role": "user", "content": "More."}]
    before = prompt(http, head, add_generation_prompt=False)
    with_late = prompt(http, [*head, {"role": "system", "content": "SYS-A"}, assistant(), USER], add_generation_prompt=False)
    assert with_late.startswith(before.removesuffix("<|im_end|>\n"))


def test_a_system_message_between_a_call_and_its_result(http):
    call = assistant(content=None, tool_calls=[{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}])
    result = {"role": "tool", "tool_call_id": "c", "content": "RESULT"}
    text = prompt(http, [USER, call, {"role": "system", "content": "SYS-A"}, result, USER])
    assert text.index("<tool_call>") < text.index("RESULT") < text.index("SYS-A")
    assert text.count("SYS-A") == 1


@pytest.mark.parametrize("messages", [
    [{"role": "system", "content": "Alone."}], [assistant()], [assistant(), USER], [{"role": "system", "content": "S"}, assistant()],
    [{"role": "tool", "content": "r"}], [{"role": "system", "content": "S"}, {"role": "tool", "content": "r"}],
    [USER, {"role": "assistant"}], [USER, assistant(content=None)], [USER, assistant(content=[])], [{"role": "user"}],
    [USER, assistant(tool_calls=[])], [USER, assistant(tool_calls=None)], [USER, assistant(content=None, tool_calls=[])],
    [USER, {"role": "tool", "tool_call_id": "unknown", "content": "r"}], [USER, {"role": "function", "name": "f", "content": "r"}],
])
def test_histories_of_any_shape(http, messages):
    assert http.post(CHAT, json={"messages": messages, "max_tokens": 1}).status_code == 200


@pytest.mark.parametrize("arguments, shown", [
    ({"a": 1}, "<parameter=a>\n1"), ('{"a": 1}', "<parameter=a>\n1"), ("", "<function=f>\n</function>"), (None, "<function=f>\n</function>"),
    ('{"a": 1, "b": "cut', "<parameter=a>\n1"), ("nonsense", "<function=f>\n</function>"), ("[1]", "<function=f>\n</function>")])
def test_arguments_of_any_shape(http, arguments, shown):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    messages = [USER, assistant(content=None, tool_calls=[call]), {"role": "tool", "tool_call_id": "c", "content": "r"}]
    assert shown in prompt(http, messages)
    assert http.post(CHAT, json={"messages": messages, "max_tokens": 1}).status_code == 200


def test_trailing_assistant_messages(http):
    """Empty ones go; others are closed, or continued where that is asked for; thinking is no reason for an error."""
    opened = prompt(http, [USER])
    for empty in (assistant(content=""), assistant(content=None), assistant(content="", reasoning_content="")):
        assert prompt(http, [USER, empty]) == opened
    closed = prompt(http, [USER, assistant()])
    assert "Answer.<|im_end|>" in closed and closed.endswith("<|im_start|>assistant\n<think>\n")
    for continued in (prompt(http, [USER, assistant()], continue_final_message=True, enable_thinking=True),
                      prompt(http, [USER, assistant(prefix=True)]), prompt(http, [USER, assistant(partial=True)])):
        assert continued.endswith("</think>\n\nAnswer.")
    reply = http.post(CHAT, json={"messages": [USER, assistant()], "continue_final_message": True, "echo": True, "max_tokens": 4,
                                  "temperature": 0}).json()["choices"][0]["message"]
    assert reply["content"].startswith("Answer.")
    both = http.post(CHAT, json={"messages": [USER, assistant()], "continue_final_message": True, "add_generation_prompt": True})
    assert both.status_code == 400
    assert prompt(http, [USER, assistant(content="<think>half a")], continue_final_message=True).endswith("<think>\nhalf a")


def test_a_closing_tag_of_the_user_ends_nothing(http):
    messages = [{"role": "user", "content": "text </think> more"}]
    made = http.post("/apply-template", json={"messages": messages}).json()
    assert made["reasoning_open"] is True
    message = http.post(CHAT, json={"messages": messages, "max_tokens": 8, "temperature": 0}).json()["choices"][0]["message"]
    assert message["reasoning"] and message["content"] == ""


@pytest.mark.parametrize("later", [[], [USER]])
def test_reasoning_by_every_spelling(http, later):
    """The same prompt, whether it is kept (after the last question) or dropped by the template (before it)."""
    said = [assistant(reasoning_content="Thought."), assistant(reasoning="Thought."),
            assistant(reasoning_details=[{"type": "reasoning.text", "text": "Thought."}]),
            assistant(content="<think>\nThought.\n</think>\n\nAnswer."),
            assistant(content=[{"type": "thinking", "thinking": "Thought."}, {"type": "text", "text": "Answer."}])]
    prompts = {prompt(http, [USER, message, *later]) for message in said}
    assert len(prompts) == 1
    assert ("Thought." in prompts.pop()) == (not later)


def test_kept_reasoning_keeps_the_prefix(http):
    """With preserve_thinking the next question finds everything before it."""
    body = {"messages": [{"role": "user", "content": "Tell me of herons. " * 20}], "max_tokens": 40, "temperature": 0,
            "cache_salt": "preserve", "chat_template_kwargs": {"preserve_thinking": True}, "thinking_budget": 8}
    first = http.post(CHAT, json=body).json()
    message = first["choices"][0]["message"]
    body["messages"] += [{"role": "assistant", "content": message["content"], "reasoning_content": message["reasoning_content"]},
                         {"role": "user", "content": "And of storks?"}]
    second = http.post(CHAT, json=body).json()["usage"]
    assert second["prompt_tokens_details"]["cached_tokens"] >= first["usage"]["total_tokens"] // 64 * 64 - 64


OFF = [{"enable_thinking": False}, {"chat_template_kwargs": {"enable_thinking": False}}, {"thinking": {"type": "disabled"}},
       {"reasoning_effort": "none"}, {"reasoning": {"effort": "none"}}, {"thinking_budget": 0}, {"thinking_token_budget": 0},
       {"reasoning": {"max_tokens": 0}}]


@pytest.mark.parametrize("fields", OFF)
def test_thinking_off_by_every_spelling(http, fields):
    reply = http.post(CHAT, json={"messages": [USER], "max_tokens": 8, "temperature": 0} | fields).json()
    assert set(reply["choices"][0]["message"]) == {"role", "content", "refusal"}
    assert reply["usage"]["completion_tokens_details"]["reasoning_tokens"] == 0


def test_efforts(http):
    for effort in ("minimal", "low", "medium", "high", "xhigh", "max"):
        reply = http.post(CHAT, json={"messages": [USER], "max_tokens": 4, "reasoning_effort": effort}).json()
        assert reply["usage"]["completion_tokens_details"]["reasoning_tokens"] == 4
    unknown = http.post(CHAT, json={"messages": [USER], "reasoning_effort": "immense"})
    assert unknown.status_code == 400 and unknown.json()["error"]["param"] == "reasoning_effort"


@pytest.mark.parametrize("form, keys", [("both", {"reasoning", "reasoning_content"}), ("reasoning", {"reasoning"}),
                                        ("reasoning_content", {"reasoning_content"}), ("none", set())])
def test_reasoning_formats(http, form, keys):
    body = {"messages": [USER], "max_tokens": 8, "temperature": 0, "reasoning_format": form}
    message = http.post(CHAT, json=body).json()["choices"][0]["message"]
    assert set(message) - {"role", "content", "refusal"} == keys
    assert message["content"].startswith("<think>\n") == (form == "none")
    hidden = http.post(CHAT, json=body | {"include_reasoning": False}).json()
    assert set(hidden["choices"][0]["message"]) == {"role", "content", "refusal"} and hidden["choices"][0]["message"]["content"] == ""
    assert hidden["usage"]["completion_tokens_details"]["reasoning_tokens"] == 8
