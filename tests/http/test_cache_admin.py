"""Administration of the prefix cache over HTTP, on a real engine."""
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from server_process import ServerProcess, eventually, serving, tokens

FLUSH = "/v1/cache/flush"
PINS = "/v1/cache/pins"


@pytest.fixture()
def admin():
    with serving("--sequences", 4) as client:
        yield client


def complete(client, prompt, **fields):
    body = {"prompt": prompt, "max_tokens": 8, "temperature": 0, "ignore_eos": True, "return_token_ids": True, **fields}
    reply = client.post("/v1/completions", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()["choices"][0]["token_ids"], reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_the_figures_move_and_a_flush_zeroes_them(admin):
    empty = admin.get("/v1/cache").json()
    assert (empty["entries"], empty["tokens"], empty["query_tokens"], empty["hit_rate"]) == (0, 0, 0, 0)
    assert empty["bytes"] == {"device": 0, "host": 0, "disk": 0} and empty["pinned"] == []
    answer, _ = complete(admin, tokens(300))
    assert complete(admin, tokens(300)) == (answer, 256)
    used = admin.get("/cache").json()
    assert used["tokens"] == 256 and used["entries"] >= 1
    assert 0 < used["bytes"]["device"] <= used["limit_bytes"]["device"]
    assert (used["hit_tokens"], used["query_tokens"]) == (256, 598)
    assert used["hit_rate"] == pytest.approx(256 / 598)

    freed = admin.post(FLUSH).json()
    assert freed == {"freed_tokens": 256, "freed_bytes": used["bytes"]["device"]}
    assert admin.get("/v1/cache").json()["bytes"]["device"] == 0
    assert complete(admin, tokens(300)) == (answer, 0)


def test_one_salt(admin):
    for salt in ("a", "b"):
        complete(admin, tokens(300), cache_salt=salt)
    assert admin.post(FLUSH, json={"scope": "salt", "cache_salt": "a"}).json()["freed_tokens"] == 256
    assert complete(admin, tokens(300), cache_salt="b")[1] == 256
    assert complete(admin, tokens(300), cache_salt="a")[1] == 0
    assert admin.post(FLUSH, json={"scope": "salt", "cache_salt": "never seen"}).json() == {
        "freed_tokens": 0, "freed_bytes": 0}


@pytest.mark.parametrize("path", ["/reset_prefix_cache", "/flush_cache", "/v1/flush_cache/"])
def test_names_of_other_servers(admin, path):
    complete(admin, tokens(100))
    assert admin.post(path).json()["freed_tokens"] == 64
    assert admin.get(path).status_code == 405


def test_running_answers_are_untouched(admin):
    prompts = [tokens(500) + tokens(40, seed) for seed in range(2, 10)]
    expected = [complete(admin, prompt, max_tokens=60)[0] for prompt in prompts]
    with ThreadPoolExecutor(9) as pool:
        answers = [pool.submit(complete, admin, prompt, max_tokens=60) for prompt in prompts]
        while not all(answer.done() for answer in answers):
            assert admin.post(FLUSH).status_code == 200
    assert [answer.result()[0] for answer in answers] == expected


def pin(client, status=201, **body):
    reply = client.post(PINS, json=body)
    assert reply.status_code == status, reply.text
    return reply.json()


def test_a_pin_outlives_what_evicts_everything_else():
    """And an answer that goes on from it is the one of a server that keeps nothing."""
    small = ("--sequences", 1, "--kv-tokens", 4096, "--cache-memory", 8)
    prompt = tokens(900) + tokens(50, 3)
    with serving("--cache-memory", 0) as cold:
        expected = complete(cold, prompt, logprobs=3)
    with serving(*small) as client:
        made = pin(client, name="docs", token_ids=tokens(900))
        assert (made["name"], made["tokens"], made["hits"], made["last_used"]) == ("docs", 896, 0, None)
        assert pin(client, 200, name="docs", token_ids=tokens(900))["id"] == made["id"]
        complete(client, tokens(900, 2))
        press(client)
        assert complete(client, tokens(900, 2))[1] == 0
        answer, cached = complete(client, prompt, logprobs=3)
        assert (answer, cached) == (expected[0], 896)
        now = client.get(f"{PINS}/{made['id']}").json()
        assert now["hits"] == 1 and abs(now["last_used"] - time.time()) < 60
        assert client.get("/v1/cache").json()["pinned"] == [now]
        assert "\nserver_pinned_prefixes 1\n" in client.get("/metrics").text

        assert client.delete(f"{PINS}/{made['id']}").json() == {"id": made["id"], "deleted": True}
        assert client.delete(f"{PINS}/{made['id']}").status_code == 404
        press(client)
        assert complete(client, prompt)[1] == 0


def press(client):
    """Fills what is kept with other prompts."""
    for seed in range(10, 18):
        complete(client, tokens(2000, seed), max_tokens=1)


def test_pins_have_a_budget_and_an_end():
    with serving("--sequences", 1, "--cache-memory", 4) as client:
        assert pin(client, token_ids=tokens(256), ttl_s=1)["expires_at"] >= time.time()
        forever = pin(client, token_ids=tokens(320))
        assert forever["expires_at"] is None
        refused = client.post(PINS, json={"token_ids": tokens(3000, 2)})  # more than 2 MiB of keys and values
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "pin_budget_exceeded"
        assert eventually(lambda: client.get(PINS).json()["data"] == [forever], 60)


def test_a_system_text_is_pinned_for_all_its_conversations(admin):
    system = "You know these facts. " + " ".join(f"Fact {i} is {i * i}." for i in range(60))
    tool = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
    made = pin(admin, name="facts", system=system, tools=[tool])
    for question in ("Why?", "42 or not?"):
        body = {"messages": [{"role": "system", "content": system}, {"role": "user", "content": question}],
                "tools": [tool], "max_tokens": 4, "temperature": 0}
        usage = admin.post("/v1/chat/completions", json=body).json()["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] == made["tokens"]
        assert usage["prompt_tokens"] - made["tokens"] < 128
    assert admin.get(PINS).json()["data"][0]["hits"] == 2


def test_a_flush_of_the_unpinned_keeps_pins(admin):
    pin(admin, token_ids=tokens(300))
    complete(admin, tokens(300, 2))
    assert admin.post(FLUSH, json={"scope": "unpinned"}).json()["freed_tokens"] == 256
    assert complete(admin, tokens(300))[1] == 256
    assert admin.post(FLUSH, json={"scope": "all"}).json()["freed_tokens"] == 256
    assert admin.get(PINS).json()["data"] == []
    assert complete(admin, tokens(300))[1] == 0


def test_keys():
    process = ServerProcess("--api-key", "user", "--admin-key", "root", "--no-public-metrics")
    with httpx.Client(base_url=process.url, timeout=60) as client:
        def status(path, key, method="GET"):
            return client.request(method, path, headers={"x-api-key": key} if key else {}).status_code

        assert [status("/v1/cache", key) for key in ("", "user", "root")] == [403, 403, 200]
        assert [status(FLUSH, key, "POST") for key in ("", "user", "root")] == [403, 403, 200]
        assert [status("/metrics", key) for key in ("", "user")] == [401, 200]
        assert status("/live", "") == 200
    assert process.stop() == 0


def test_the_log_has_numbers_and_no_content():
    process = ServerProcess("--log-level", "info")
    with httpx.Client(base_url=process.url, timeout=60) as client:
        body = {"messages": [{"role": "user", "content": "xyzzy plugh"}], "max_tokens": 4, "temperature": 0}
        usage = client.post("/v1/chat/completions", json=body, headers={"x-request-id": 'a"b"'}).json()["usage"]
    assert process.stop() == 0
    log = "".join(process.log)
    assert r'request id="a\"b\"" method=POST handler=/chat/completions status=200' in log
    line = next(line for line in process.log if "answer id=" in line)
    assert f"prompt={usage['prompt_tokens']} cached=0 completion={usage['completion_tokens']}" in line
    assert "end=complete" in line
    assert "xyzzy" not in log and "plugh" not in log


def test_the_log_can_be_turned_off():
    process = ServerProcess("--log-level", "error")
    with httpx.Client(base_url=process.url, timeout=60) as client:
        assert client.get("/live").status_code == 200
    assert process.stop() == 0
    assert not [line for line in process.log if "request id=" in line]
