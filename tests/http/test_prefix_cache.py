"""Prefix reuse through the whole server: what is reused, and that nobody can tell from the answer."""
from concurrent.futures import ThreadPoolExecutor

import pytest
from server_process import serving, tokens

BLOCK = 64


@pytest.fixture(scope="module")
def cold():
    """A server that keeps nothing."""
    with serving("--cache-memory", 0) as client:
        yield client


@pytest.fixture()
def warm():
    with serving("--sequences", 8) as client:
        yield client


def complete(client, prompt, **fields):
    body = {"prompt": prompt, "max_tokens": 12, "temperature": 0, "logprobs": 3, "ignore_eos": True,
            "return_token_ids": True, **fields}
    reply = client.post("/v1/completions", json=body)
    assert reply.status_code == 200, reply.text
    choice = reply.json()["choices"][0]
    answer = (choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["logprobs"]["top_logprobs"])
    return answer, reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("length", [63, 64, 65, 128, 129, 256, 511, 512, 513, 700])
def test_a_repeated_prompt_computes_its_last_block_alone(cold, warm, length):
    expected, none = complete(cold, tokens(length))
    first, before = complete(warm, tokens(length))
    again, reused = complete(warm, tokens(length))
    assert (none, before, reused) == (0, 0, (length - 1) // BLOCK * BLOCK)
    assert first == expected and again == expected


def test_a_shared_prefix_is_reused_to_the_branch_once_seen(cold, warm):
    reused = []
    for seed in range(2, 5):
        prompt = tokens(1500) + tokens(500, seed)
        answer, cached = complete(warm, prompt)
        assert answer == complete(cold, prompt)[0]
        reused.append(2000 - cached)
    assert reused[1] <= 756 and reused[2] <= 564, reused


def test_a_longer_prompt_goes_on_after_the_shorter(cold, warm):
    complete(warm, tokens(1000))
    longer = tokens(1000) + tokens(100, 5)
    answer, cached = complete(warm, longer)
    assert cached == 960
    assert answer == complete(cold, longer)[0]


def test_concurrent_requests_with_one_prefix_are_exact(cold, warm):
    prompts = [tokens(900) + tokens(40, seed) for seed in range(2, 18)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda prompt: complete(warm, prompt), prompts))
    for prompt, (answer, _) in zip(prompts, answers):
        assert answer == complete(cold, prompt)[0]
    assert sum(cached >= 832 for _, cached in answers) >= 15


def test_salts_share_nothing(warm):
    complete(warm, tokens(300))
    assert complete(warm, tokens(300), cache_salt="a")[1] == 0
    assert complete(warm, tokens(300), cache_salt="a")[1] == 256
    assert complete(warm, tokens(300), cache_salt="b")[1] == 0
    assert complete(warm, tokens(300))[1] == 256


def test_a_conversation_reuses_everything_before_the_last_turn(cold, warm):
    """Sampled with a seed, thinking on: the template drops the reasoning of earlier turns."""
    messages = [{"role": "system", "content": "You are brief. " * 30}]
    total_before = 0
    for turn in range(4):
        messages.append({"role": "user", "content": f"Question {turn}: " + "tell me more. " * 12})
        body = {"messages": messages, "max_tokens": 40, "seed": 5, "logprobs": True,
                "chat_template_kwargs": {"enable_thinking": True}}
        answers = []
        for client in (warm, cold):
            reply = client.post("/v1/chat/completions", json=body)
            assert reply.status_code == 200, reply.text
            answers.append(reply.json())
        assert answers[0]["choices"] == answers[1]["choices"]
        usage = answers[0]["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        if turn > 0:
            # All but the generation prompt of the turn before, and at most a block less.
            assert cached > total_before - BLOCK - 8, (turn, cached, total_before)
        total_before = usage["prompt_tokens"]
        message = answers[0]["choices"][0]["message"]
        messages.append({"role": "assistant", "content": message["content"] or "Yes."})


@pytest.mark.parametrize("mark", [None, "cache_control", "prompt_cache_breakpoint"])
def test_a_marked_part_of_a_chat_can_be_reused(warm, mark):
    """Up to the mark two prompts are the same; without it nobody knows that a state is worth keeping there."""
    shared = {"type": "text", "text": "The rules. " * 30} | ({mark: {"type": "ephemeral"}} if mark else {})
    cached = []
    for question in ("one", "two"):
        messages = [{"role": "user", "content": [shared, {"type": "text", "text": f"{question} " * 150}]}]
        reply = warm.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 1})
        cached.append(reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"])
    assert cached[0] == 0 and (cached[1] >= BLOCK) == (mark is not None)
