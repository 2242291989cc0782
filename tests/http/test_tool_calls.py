"""Tool calls through the whole server: a scripted model calls, the official client reads, and the call comes back."""
import json
import sys
from pathlib import Path

import anthropic
import openai
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from scripted_model import write_scripted_model  # noqa: E402
from server_process import ServerProcess  # noqa: E402

BLOCK = 64
# Not as the template writes a call, and cut into other tokens than the tokenizer would: once it has begun, it is led.
CALL = ["<tool_call>", "<function=look><parameter =at>Room 7</parameter></function>\n", "</tool_call>"]
TOOLS = [{"type": "function", "function": {
    "name": "look", "description": "Looks around. " * 10,
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}]
NO_THINKING = {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """A server whose model answers everything with CALL, and its client."""
    directory = tmp_path_factory.mktemp("scripted")
    script = write_scripted_model(directory, CALL, after="\n\n")
    process = ServerProcess("--context", 4096, "--sequences", 4, "--enable-debug", "--api-key", "a", "--api-key", "b",
                            model=directory)
    with openai.OpenAI(base_url=process.url + "/v1", api_key="a", max_retries=0) as client:
        yield client, script
    assert process.stop() == 0, "".join(process.log)


def ask(client, messages, **fields):
    return client.chat.completions.create(model="any", messages=messages, tools=TOOLS, temperature=0,
                                          **NO_THINKING, **fields)


QUESTION = [{"role": "user", "content": "Where is it? " * 30}]


def test_a_call_whole_and_streamed(agent):
    client, _ = agent
    reply = ask(client, QUESTION)
    choice = reply.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    (call,) = choice.message.tool_calls
    assert (call.function.name, call.function.arguments) == ("look", '{"at": "Room 7"}')

    arguments, ids, finish = "", [], None
    for chunk in ask(client, QUESTION, stream=True, stream_options={"include_usage": True}):
        if not chunk.choices:
            assert chunk.usage.completion_tokens == reply.usage.completion_tokens
            continue
        delta = chunk.choices[0].delta
        assert not delta.content
        for piece in delta.tool_calls or []:
            assert piece.index == 0
            ids += [piece.id] if piece.id else []
            arguments += piece.function.arguments or ""
        finish = chunk.choices[0].finish_reason or finish
    assert (arguments, len(ids), finish) == ('{"at": "Room 7"}', 1, "tool_calls")


def test_the_tool_runner_of_anthropic(agent):
    """It holds conversations on the server where it can; here it must send them whole, and does so by itself."""
    client, _ = agent
    looked = []

    @anthropic.beta_tool
    def look(at: str) -> str:
        """Looks around.

        Args:
            at: the place
        """
        looked.append(at)
        return "Nothing but dust."

    with anthropic.Anthropic(base_url=str(client.base_url).replace("/v1/", ""), api_key="a", max_retries=0) as claude:
        runner = claude.beta.messages.tool_runner(
            model="any", max_tokens=100, messages=QUESTION, tools=[look], max_iterations=3, extra_body={"temperature": 0})
        messages = list(runner)
    assert [message.stop_reason for message in messages] == ["tool_use"] * 3
    assert set(looked) == {"Room 7"} and len(looked) >= 2
    sizes = [message.usage.input_tokens + message.usage.cache_read_input_tokens for message in messages]
    assert sizes == sorted(set(sizes)), "each prompt holds the one before"


def question_before_a_block_ends_in_the_call(client, call_tokens):
    """A question after which the call goes over the end of a block, and the prompt tokens until then."""
    for padding in range(2 * BLOCK):
        question = [{"role": "user", "content": "Where is it? " * 30 + " so" * padding}]
        prompt_tokens = ask(client, question, max_tokens=1).usage.prompt_tokens
        if prompt_tokens // BLOCK != (prompt_tokens + call_tokens) // BLOCK:
            return question, prompt_tokens
    raise AssertionError("no padding fits")


def test_the_next_turn_takes_up_the_computed_call(agent):
    client, script = agent
    question, prompt_tokens = question_before_a_block_ends_in_the_call(client, len(script))
    call = ask(client, question).choices[0].message.tool_calls[0]

    def cached(who, arguments):
        function = {"name": call.function.name, "arguments": arguments}
        messages = [*question,
                    {"role": "assistant", "content": None,
                     "tool_calls": [{"id": call.id, "type": "function", "function": function}]},
                    {"role": "tool", "tool_call_id": call.id, "content": "Nothing but dust. " * 20}]
        usage = ask(who, messages).usage
        assert usage.prompt_tokens > prompt_tokens + len(script)
        return usage.prompt_tokens_details.cached_tokens

    past_the_call = (prompt_tokens + len(script)) // BLOCK * BLOCK
    assert cached(client, '{"at": "Room 8"}') < past_the_call
    assert cached(client, call.function.arguments) == past_the_call
    assert cached(client.with_options(api_key="b"), call.function.arguments) == 0


def test_required_choices_without_tools_are_refused(agent):
    client, _ = agent
    for choice in ("required", {"type": "function", "function": {"name": "look"}}):
        with pytest.raises(openai.BadRequestError) as error:
            client.chat.completions.create(model="any", messages=QUESTION, tool_choice=choice)
        assert error.value.body["param"] == "tool_choice"


def test_one_call_and_none(agent):
    client, _ = agent
    with_none = ask(client, QUESTION, tool_choice="none", max_tokens=4)
    assert with_none.choices[0].message.tool_calls is None
    assert with_none.usage.prompt_tokens == ask(client, QUESTION).usage.prompt_tokens
    one = ask(client, QUESTION, parallel_tool_calls=False)
    assert len(one.choices[0].message.tool_calls) == 1 and one.choices[0].finish_reason == "tool_calls"


def test_debug_parse(agent):
    client, _ = agent
    body = {"text": "".join(CALL), "tools": TOOLS}
    reply = client.with_options(base_url=str(client.base_url).replace("/v1", "")).post(
        "/debug/parse", body=body, cast_to=object)
    assert json.loads(reply["message"]["tool_calls"][0]["function"]["arguments"]) == {"at": "Room 7"}
    assert reply["finish_reason"] == "tool_calls"


FORCED = [
    {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}},
    {"type": "function", "function": {"name": "pick", "strict": True, "parameters": {
        "type": "object", "required": ["colour"],
        "properties": {"colour": {"enum": ["red", "blue"]}, "count": {"type": "boolean"}}}}}]


def forced(client, choice, **fields):
    reply = client.chat.completions.create(
        model="any", messages=QUESTION, tools=FORCED, tool_choice=choice, max_tokens=400, parallel_tool_calls=False,
        extra_body={"thinking_budget": 16}, **fields)
    return reply.choices[0]


@pytest.mark.parametrize("seed", range(3))
def test_forced_calls_after_free_reasoning(client, seed):
    """The random model knows nothing: what it says is the grammar's doing."""
    def pick(name):
        return {"type": "function", "function": {"name": name}}
    for choice, names in (("required", {"stop", "pick"}), (pick("pick"), {"pick"}), (pick("stop"), {"stop"})):
        answer = forced(client, choice, seed=seed)
        assert answer.finish_reason == "tool_calls", answer
        (call,) = answer.message.tool_calls
        assert call.function.name in names
        arguments = json.loads(call.function.arguments)
        if call.function.name == "pick":
            assert arguments["colour"] in ("red", "blue")
            assert set(arguments) <= {"colour", "count"} and isinstance(arguments.get("count", True), bool)
        else:
            assert arguments == {}


def test_an_allowed_subset_is_obeyed(client):
    subset = {"type": "allowed_tools", "allowed_tools": {
        "mode": "required", "tools": [{"type": "function", "function": {"name": "stop"}}]}}
    (call,) = forced(client, subset, seed=1).message.tool_calls
    assert call.function.name == "stop"


def test_unknown_names_are_refused(client):
    with pytest.raises(openai.BadRequestError) as error:
        forced(client, {"type": "function", "function": {"name": "nothing"}})
    assert error.value.body["param"] == "tool_choice"


def test_a_cut_call_may_come_back(agent):
    """A limit inside a call: the arguments are no JSON, and the history with them is answered."""
    client, script = agent
    whole = ask(client, QUESTION).choices[0].message.tool_calls[0].function.arguments
    cut_inside = 0
    for size in range(1, len(script)):
        answer = ask(client, QUESTION, max_tokens=size).choices[0]
        assert answer.finish_reason == "length"
        for call in answer.message.tool_calls or []:
            arguments = call.function.arguments
            assert whole.startswith(arguments)
            if arguments == whole:
                continue  # the call was closed; its own tag was cut
            with pytest.raises(json.JSONDecodeError):
                json.loads(arguments)
            cut_inside += 1
            history = [*QUESTION, answer.message.model_dump(exclude_none=True),
                       {"role": "tool", "tool_call_id": call.id, "content": "failed"}]
            assert ask(client, history, max_tokens=2).usage.completion_tokens > 0
    assert cut_inside > 3


@pytest.mark.parametrize("seed", range(4))
def test_a_form_of_the_content_beside_tools(client, seed):
    """Either a call, or content of the wanted form."""
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
    answer = client.chat.completions.create(
        model="any", messages=QUESTION, tools=FORCED, max_tokens=300, seed=seed, extra_body={"thinking_budget": 4},
        response_format={"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": schema}}).choices[0]
    if answer.message.tool_calls:
        assert answer.finish_reason in ("tool_calls", "length")
    else:
        assert json.loads(answer.message.content)["n"] in (1, 2)


def scripted_call(directory, parts, tools, **fields):
    """The one call of a model that says `parts`, with tool_choice auto."""
    write_scripted_model(directory, parts, after="\n\n")
    process = ServerProcess("--context", 2048, model=directory)
    with openai.OpenAI(base_url=process.url + "/v1", api_key="any", max_retries=0) as client:
        reply = client.chat.completions.create(model="any", messages=QUESTION, tools=tools, temperature=0, max_tokens=200,
                                               **NO_THINKING, **fields)
    assert process.stop() == 0, "".join(process.log)
    assert reply.choices[0].finish_reason == "tool_calls"
    (call,) = reply.choices[0].message.tool_calls
    return call.function


def test_a_call_of_its_own_names_a_declared_tool(tmp_path):
    """The model would call `lost`, which is not there."""
    tools = [{"type": "function", "function": {"name": "look"}}]
    call = scripted_call(tmp_path, ["<tool_call>", "<function=lost>\n</function>", "</tool_call>"], tools)
    assert (call.name, call.arguments) == ("look", "{}")


def test_a_call_of_its_own_to_a_strict_tool_follows_the_schema(tmp_path):
    """The model would leave out what is required."""
    tools = [{"type": "function", "function": {"name": "look", "strict": True, "parameters": {
        "type": "object", "properties": {"at": {"enum": ["sea", "sky"]}}, "required": ["at"]}}}]
    call = scripted_call(tmp_path, ["<tool_call>", "<function=look></function>\n", "</tool_call>"], tools)
    assert json.loads(call.arguments) in ({"at": "sea"}, {"at": "sky"})


def test_a_tag_that_is_spoken_of_is_text(tmp_path):
    write_scripted_model(tmp_path, ["<tool_call>", " opens a call"], after="\n\n")
    process = ServerProcess("--context", 2048, model=tmp_path)
    with openai.OpenAI(base_url=process.url + "/v1", api_key="any", max_retries=0) as client:
        reply = client.chat.completions.create(model="any", messages=QUESTION, tools=TOOLS, temperature=0, **NO_THINKING)
    assert process.stop() == 0, "".join(process.log)
    assert reply.choices[0].message.content == "<tool_call> opens a call"
    assert reply.choices[0].message.tool_calls is None
