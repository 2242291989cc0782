"""Whole tool loops in every dialect, streamed as agents do it: three calls and their results, then the answer; every turn
after the first finds nearly all of its prompt computed."""
import json

import anthropic
import openai
import pytest
from scripted_turns import call, write_model_of_turns
from server_process import ServerProcess

TOOLS = {"read": ["path"], "edit": ["path", "old", "new"], "run": ["command"]}
CALLS = [("read", {"path": "notes.txt"}), ("edit", {"path": "notes.txt", "old": "port 1", "new": "port <2>\n\n& more"}),
         ("run", {"command": "cat notes.txt | grep 'port'"})]
RESULTS = ["port 1", "done", "port <2>"]
ANSWER = "It is all done."
SYSTEM = "Read with care what is said here. " * 200
CACHED_SHARE_MIN = 0.9


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    directory = tmp_path_factory.mktemp("turns")
    write_model_of_turns(directory, [call(name, **arguments) for name, arguments in CALLS], ANSWER, "\n\n", context=8192)
    process = ServerProcess("--context", 8192, "--sequences", 4, "--thinking", "off", model=directory)
    yield process.url
    assert process.stop() == 0, "".join(process.log)


def schema(name):
    return {"type": "object", "properties": {parameter: {"type": "string"} for parameter in TOOLS[name]}}


def check(asked, usages):
    assert asked == CALLS
    for prompt, cached in usages[1:]:
        assert cached >= CACHED_SHARE_MIN * prompt


def test_chat(url):
    tools = [{"type": "function", "function": {"name": name, "parameters": schema(name)}} for name in TOOLS]
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Chat: change the port."}]
    asked, usages = [], []
    with openai.OpenAI(base_url=url + "/v1", api_key="any", max_retries=0) as client:
        for result in [*RESULTS, None]:
            with client.chat.completions.stream(model="any", messages=messages, tools=tools, temperature=0,
                                                stream_options={"include_usage": True}) as stream:
                reply = stream.get_final_completion()
            usages.append((reply.usage.prompt_tokens, reply.usage.prompt_tokens_details.cached_tokens))
            message = reply.choices[0].message
            if result is None:
                break
            (made,) = message.tool_calls
            asked.append((made.function.name, json.loads(made.function.arguments)))
            messages += [{"role": "assistant", "content": message.content, "tool_calls": [
                {"id": made.id, "type": "function",
                 "function": {"name": made.function.name, "arguments": made.function.arguments}}]},
                {"role": "tool", "tool_call_id": made.id, "content": result}]
    assert (message.content, message.tool_calls) == (ANSWER, None)
    check(asked, usages)


def test_responses(url):
    tools = [{"type": "function", "name": name, "parameters": schema(name), "strict": False} for name in TOOLS]
    items, asked, usages = [{"role": "user", "content": "Responses: change the port."}], [], []
    with openai.OpenAI(base_url=url + "/v1", api_key="any", max_retries=0) as client:
        for result in [*RESULTS, None]:
            with client.responses.stream(model="any", instructions=SYSTEM, input=items, tools=tools, temperature=0,
                                         store=False) as stream:
                reply = stream.get_final_response()
            usages.append((reply.usage.input_tokens, reply.usage.input_tokens_details.cached_tokens))
            if result is None:
                break
            made = next(item for item in reply.output if item.type == "function_call")
            asked.append((made.name, json.loads(made.arguments)))
            items += [item.model_dump(exclude_none=True) for item in reply.output]
            items.append({"type": "function_call_output", "call_id": made.call_id, "output": result})
    assert reply.output_text == ANSWER
    check(asked, usages)


def test_messages(url):
    tools = [{"name": name, "input_schema": schema(name)} for name in TOOLS]
    messages, asked, usages = [{"role": "user", "content": "Messages: change the port."}], [], []
    with anthropic.Anthropic(base_url=url, api_key="any", max_retries=0) as client:
        for result in [*RESULTS, None]:
            with client.messages.stream(model="any", system=SYSTEM, max_tokens=500, messages=messages, tools=tools,
                                        extra_body={"temperature": 0}) as stream:
                reply = stream.get_final_message()
            usage = reply.usage
            usages.append((usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
                           usage.cache_read_input_tokens))
            if result is None:
                break
            made = next(block for block in reply.content if block.type == "tool_use")
            asked.append((made.name, made.input))
            messages += [{"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]},
                         {"role": "user", "content": [
                             {"type": "tool_result", "tool_use_id": made.id, "content": result}]}]
    assert [block.text for block in reply.content] == [ANSWER]
    check(asked, usages)
