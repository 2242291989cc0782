"""Requests that must wait for their turn: pings, priorities, and what is left of those who leave."""
import contextlib
import threading

import anthropic
import openai
import pytest
from scrape import Scrape
from server_process import eventually, serving, tokens
from wire import Wire, request_bytes

ASK = {"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8, "temperature": 0}
# Much longer than anything below takes; all of it is cancelled. Not streams: who does not read those is cut off.
BLOCKER = {"prompt": [7] * 10, "max_tokens": 4000, "n": 8, "ignore_eos": True}
BLOCKERS = 3
SECONDS_MAX = 300


@pytest.fixture()
def busy():
    """A server that computes one sequence at a time and pings every second."""
    with serving("--sequences", 1, "--sse-ping", 1, "--threads", 1) as client:
        yield client


def taken_requests(client):
    """How many requests the engine has taken so far."""
    return Scrape(client)("vllm:request_params_n_count")


@contextlib.contextmanager
def blocked(client):
    """Somebody else's answers are being computed until the end of the block."""
    before = taken_requests(client)
    with contextlib.ExitStack() as stack:
        for _ in range(BLOCKERS):
            wire = stack.enter_context(Wire(client.base_url.port, SECONDS_MAX))
            wire.send(request_bytes("/v1/completions", BLOCKER))
        assert eventually(lambda: taken_requests(client) == before + BLOCKERS, 60)
        yield


def test_waiting_streams_get_pings_that_clients_understand(busy):
    alone = busy.post("/v1/chat/completions", json=ASK).json()["choices"][0]["message"]["reasoning"]
    said = {}

    def ask_openai():
        with openai.OpenAI(base_url=str(busy.base_url) + "/v1", api_key="any", max_retries=0) as client:
            stream = client.chat.completions.create(model="any", stream=True, **ASK)
            said["openai"] = "".join((chunk.choices[0].delta.model_extra or {}).get("reasoning", "") for chunk in stream)

    def ask_anthropic():
        with anthropic.Anthropic(base_url=str(busy.base_url), api_key="any", max_retries=0) as client:
            with client.messages.stream(model="any", messages=ASK["messages"], max_tokens=8,
                                        thinking={"type": "adaptive"}, extra_body={"temperature": 0}) as stream:
                said["anthropic"] = stream.get_final_message().content[0].thinking

    clients = [threading.Thread(target=ask) for ask in (ask_openai, ask_anthropic)]
    with contextlib.ExitStack() as waiting:
        with blocked(busy):
            before = taken_requests(busy)
            for client in clients:
                client.start()
            assert eventually(lambda: taken_requests(busy) == before + 2, 60)
            # These come later: when they have got a ping, so have the others.
            chat = waiting.enter_context(busy.stream("POST", "/v1/chat/completions", json=ASK | {"stream": True}))
            message = waiting.enter_context(busy.stream("POST", "/v1/messages", json=ASK | {"stream": True}))
            chunks, events = chat.iter_text(), message.iter_text()
            received = ["", ""]
            while ": ping\n\n" not in received[0]:
                received[0] += next(chunks)
            while 'event: ping\ndata: {"type":"ping"}\n\n' not in received[1]:
                received[1] += next(events)
            assert "[DONE]" not in received[0] and "message_start" not in received[1]
        assert "".join([received[0], *chunks]).endswith("data: [DONE]\n\n")
        assert "message_stop" in "".join([received[1], *events])
        for client in clients:
            client.join()
    assert said == {"openai": alone, "anthropic": alone}


def test_priorities_order_a_full_house(busy):
    """Asked in the order 5, 0, -5; answered the other way round, so each waited longer than the next."""
    waited = {}

    def ask(priority):
        reply = busy.post("/v1/chat/completions", json=ASK | {"priority": priority, "timings": True})
        waited[priority] = reply.json()["timings"]["queue_ms"]

    threads = []
    with blocked(busy):
        before = taken_requests(busy)
        for count, priority in enumerate((5, 0, -5), 1):
            threads.append(threading.Thread(target=ask, args=(priority,)))
            threads[-1].start()
            assert eventually(lambda: taken_requests(busy) == before + count, 60)
    for thread in threads:
        thread.join()
    assert waited[5] > waited[0] > waited[-5]


def test_who_leaves_leaves_the_prefix(busy):
    """The computed prompt of a stream that was closed is reused by the next."""
    body = {"prompt": tokens(300), "max_tokens": 3000, "ignore_eos": True}
    with busy.stream("POST", "/v1/completions", json=body | {"stream": True}) as stream:
        next(stream.iter_raw())
    assert eventually(lambda: busy.get("/health").json()["running"] == 0)
    again = busy.post("/v1/completions", json=body | {"max_tokens": 1})
    assert again.json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 256
