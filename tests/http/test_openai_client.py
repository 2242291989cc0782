"""The official OpenAI client against the server: what it asks for, it gets, as its own types."""
import json
import threading

import openai
import pytest
from server_process import ServerProcess, eventually, generate

QUESTION = "Tell me a story."
MESSAGES = [{"role": "user", "content": QUESTION}]
GREEDY = {"model": "random", "messages": MESSAGES, "temperature": 0, "max_tokens": 32}


def collect(stream):
    """(reasoning, content, finish reasons, token ids, usage) of a stream."""
    reasoning, content, finishes, token_ids, usage = "", "", [], [], None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            extra = choice.delta.model_extra or {}
            assert extra.get("reasoning_content") == extra.get("reasoning")
            reasoning += extra.get("reasoning_content") or ""
            content += choice.delta.content or ""
            token_ids += (choice.model_extra or {}).get("token_ids") or []
            if choice.finish_reason:
                finishes.append(choice.finish_reason)
    return reasoning, content, finishes, token_ids, usage


def test_models(client):
    models = client.models.list().data
    assert [model.id for model in models] == ["random"]
    assert client.models.retrieve("random").object == "model"
    assert models[0].model_extra["max_model_len"] == 2048


@pytest.mark.parametrize("thinking", [True, False])
def test_stream_equals_whole_reply_and_generate(client, thinking):
    extra = {"return_token_ids": True, "chat_template_kwargs": {"enable_thinking": thinking}}
    whole = client.chat.completions.create(**GREEDY, extra_body=extra)
    message = whole.choices[0].message
    stream = client.chat.completions.create(**GREEDY, extra_body=extra, stream=True,
                                            stream_options={"include_usage": True})
    reasoning, content, finishes, token_ids, usage = collect(stream)
    assert reasoning == (message.model_extra.get("reasoning_content") or "")
    assert content == message.content
    assert finishes == [whole.choices[0].finish_reason]
    assert token_ids == whole.choices[0].model_extra["token_ids"]
    assert usage == whole.usage
    alone = generate("--chat", QUESTION, "--max-tokens", 32, "--temperature", 0,
                     "--thinking" if thinking else "--no-thinking")
    assert token_ids == alone["token_ids"]
    assert usage.prompt_tokens == alone["usage"]["prompt_tokens"]


def test_completion_equals_generate(client):
    whole = client.completions.create(model="random", prompt="Once upon a time", temperature=0, max_tokens=24,
                                      extra_body={"return_token_ids": True})
    alone = generate("--prompt", "Once upon a time", "--max-tokens", 24, "--temperature", 0)
    assert whole.choices[0].model_extra["token_ids"] == alone["token_ids"]
    stream = client.completions.create(model="random", prompt="Once upon a time", temperature=0, max_tokens=24, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text


def test_completion_fills_the_middle(client):
    """As with the tokens spelled in the prompt, which editors that know the model do."""
    fields = dict(model="random", temperature=0, max_tokens=8)
    middle = client.completions.create(prompt="def f(", suffix="):\n    pass", **fields)
    spelled = client.completions.create(prompt="<|fim_prefix|>def f(<|fim_suffix|>):\n    pass<|fim_middle|>", **fields)
    assert middle.choices[0].text == spelled.choices[0].text
    assert middle.usage.prompt_tokens == spelled.usage.prompt_tokens


def test_seeded_sampling_repeats(client):
    wanted = dict(GREEDY, temperature=1.0, seed=11)
    first, second = (client.chat.completions.create(**wanted, extra_body={"return_token_ids": True}) for _ in range(2))
    assert first.choices[0].model_extra["token_ids"] == second.choices[0].model_extra["token_ids"]
    assert first.system_fingerprint == second.system_fingerprint
    other = client.chat.completions.create(**dict(wanted, seed=12), extra_body={"return_token_ids": True})
    assert first.choices[0].model_extra["token_ids"] != other.choices[0].model_extra["token_ids"]


def test_several_choices(client):
    reply = client.chat.completions.create(**dict(GREEDY, temperature=1.0), n=3, seed=5)
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    alone = client.chat.completions.create(**GREEDY)
    assert reply.usage.prompt_tokens == alone.usage.prompt_tokens
    assert reply.usage.completion_tokens <= 3 * 32


def test_logprobs(client):
    extra = {"enable_thinking": False}
    reply = client.chat.completions.create(**GREEDY, logprobs=True, top_logprobs=3, extra_body=extra)
    tokens = reply.choices[0].logprobs.content
    assert all(len(token.top_logprobs) == 3 for token in tokens)
    assert all(token.logprob == token.top_logprobs[0].logprob for token in tokens), "greedy takes the best"
    said = b"".join(bytes(token.bytes) for token in tokens).decode(errors="replace")
    assert said == reply.choices[0].message.content


def test_stop_texts(client):
    extra = {"enable_thinking": False}
    whole = client.chat.completions.create(**GREEDY, extra_body=extra).choices[0].message.content
    stop = whole[len(whole) // 2:][:3]
    cut = client.chat.completions.create(**GREEDY, stop=["", stop], extra_body=extra)
    assert cut.choices[0].message.content == whole[:whole.index(stop)]
    assert cut.choices[0].finish_reason == "stop"
    assert cut.choices[0].model_extra["stop_reason"] == stop
    stream = client.chat.completions.create(**GREEDY, stop=stop, extra_body=extra, stream=True)
    assert collect(stream)[1] == whole[:whole.index(stop)]


def test_logit_bias(client):
    extra = {"return_token_ids": True, "ignore_eos": True}
    reply = client.chat.completions.create(**GREEDY, logit_bias={"7": 100}, extra_body=extra)
    assert set(reply.choices[0].model_extra["token_ids"]) == {7}


def test_reasoning_cut_by_the_limit(client):
    reply = client.chat.completions.create(**dict(GREEDY, max_tokens=5), extra_body={"enable_thinking": True})
    assert reply.choices[0].finish_reason == "length"
    assert reply.choices[0].message.content == ""
    assert reply.usage.completion_tokens_details.reasoning_tokens == 5
    empty = client.chat.completions.create(**dict(GREEDY, max_tokens=0))
    assert empty.choices[0].finish_reason == "length"
    assert empty.usage.completion_tokens == 0


@pytest.mark.parametrize("fields, param", [
    ({"temperature": 2.5}, "temperature"),
    ({"n": 99}, "n"),
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "bot", "content": "x"}]}, "messages[0].role"),
    ({"functions": [{"name": "f"}]}, "functions"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    ({"stop": ["x"] * 17}, "stop"),
])
def test_bad_requests_are_bad_request_errors(client, fields, param):
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(**(GREEDY | fields), stream=stream)
        assert caught.value.param == param
        assert isinstance(caught.value.code, str)
        assert caught.value.request_id.startswith("req_")


def test_overflow_has_the_text_agents_look_for(client):
    with pytest.raises(openai.BadRequestError, match=r"maximum context length is 2048 tokens") as caught:
        client.chat.completions.create(**(GREEDY | {"messages": [{"role": "user", "content": "word " * 4000}]}))
    assert caught.value.code == "context_length_exceeded"


def test_unknown_model_and_path(client):
    reply = client.chat.completions.create(**(GREEDY | {"model": "gpt-4o"}))
    assert reply.model == "gpt-4o"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model="random", input="x")


def test_keys():
    process = ServerProcess("--api-key", "right", "--context", 256)
    try:
        with openai.OpenAI(base_url=process.url + "/v1", api_key="wrong", max_retries=0) as refused:
            with pytest.raises(openai.AuthenticationError):
                refused.models.list()
        with openai.OpenAI(base_url=process.url + "/v1", api_key="right", max_retries=0) as allowed:
            assert allowed.models.list().data
    finally:
        assert process.stop() == 0


def running(http):
    return http.get("/health").json()["running"]


def test_closing_a_stream_cancels(client, http):
    endless = dict(GREEDY, max_tokens=1900)
    stream = client.chat.completions.create(**endless, stream=True, extra_body={"ignore_eos": True})
    next(iter(stream))
    assert eventually(lambda: running(http) == 1)
    stream.close()
    assert eventually(lambda: running(http) == 0, 5)


def test_full_queue_and_retry(server):
    process = ServerProcess("--sequences", 1, "--queue", 1, "--context", 2048)
    long = dict(GREEDY, max_tokens=600, extra_body={"ignore_eos": True})
    try:
        with openai.OpenAI(base_url=process.url + "/v1", api_key="any", max_retries=0) as impatient:
            streams = [impatient.chat.completions.create(**long, stream=True) for _ in range(2)]
            with pytest.raises(openai.RateLimitError) as caught:
                impatient.chat.completions.create(**GREEDY)
            assert caught.value.response.headers["retry-after"]
            for stream in streams:
                stream.close()
        with openai.OpenAI(base_url=process.url + "/v1", api_key="any", max_retries=5) as patient:
            assert patient.chat.completions.create(**GREEDY).choices
    finally:
        assert process.stop() == 0


def test_many_streams_equal_their_solo_runs(client):
    def ask(index):
        wanted = dict(GREEDY, messages=[{"role": "user", "content": f"Question {index}"}])
        return client.chat.completions.create(**wanted, extra_body={"return_token_ids": True}, stream=True)

    solo = [collect(ask(index)) for index in range(6)]
    together = [None] * 6

    def run(index):
        together[index] = collect(ask(index))

    threads = [threading.Thread(target=run, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == solo


def test_history_of_an_agent(client):
    """A conversation with calls, results, late system messages and cut arguments is answered."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py", "text": "de'}}
    messages = [
        {"role": "system", "content": "A"}, {"role": "developer", "content": "B"}, {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "system", "content": "between"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}]},
        {"role": "assistant", "content": ""},
    ]
    reply = client.chat.completions.create(**(GREEDY | {"messages": messages}))
    assert reply.choices[0].finish_reason in ("stop", "length")
    assert json.dumps(reply.model_dump())
