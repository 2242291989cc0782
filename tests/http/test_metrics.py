"""/metrics against what clients were told: parsed as Prometheus does it."""
import httpx
import pytest
from scrape import Scrape
from server_process import eventually, serving, tokens

CHAT = "/v1/chat/completions"

# Names that dashboards and alerts rely on. Counters as they are written, with _total.
GAUGES = ["server_pinned_prefixes", "server_cache_bytes", "server_cache_checkpoints", "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"]
COUNTERS = [
    "vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:request_success_total",
    "vllm:num_preemptions_total", "server_pictures_total", "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total",
    "vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_draft_tokens_total",
    "vllm:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_accepted_tokens_per_pos_total",
    "server_reasoning_tokens_total", "server_cache_evictions_total", "server_client_disconnects_total",
    "server_tool_calls_total", "server_cache_lookups_total", "server_computed_tokens_total",
]
HISTOGRAMS = [
    "vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds",
    "vllm:request_time_per_output_token_seconds", "vllm:e2e_request_latency_seconds",
    "vllm:request_queue_time_seconds", "vllm:request_prefill_time_seconds", "vllm:request_decode_time_seconds",
    "vllm:request_inference_time_seconds", "vllm:request_prompt_tokens", "vllm:request_generation_tokens",
    "vllm:request_params_max_tokens", "vllm:request_params_n", "vllm:iteration_tokens_total", "server_step_seconds",
]


@pytest.fixture()
def metered():
    """A server nobody else has used."""
    with serving("--sequences", 4) as client:
        yield client


def complete(client, prompt, **fields):
    reply = client.post("/v1/completions", json={"prompt": prompt, "max_tokens": 4, "temperature": 0, **fields})
    assert reply.status_code == 200, reply.text
    return reply


def test_every_name_is_there_from_the_start_at_zero(metered):
    now = Scrape(metered)
    for name in GAUGES + COUNTERS:
        assert now(name) == 0, name
    for name in HISTOGRAMS:
        assert (now(name + "_count"), now(name + "_sum")) == (0, 0), name
        assert now(name + "_bucket", le="+Inf") == 0
    assert now("vllm:cache_config_info", block_size="64", enable_prefix_caching="True") == 1
    assert now("server_build_info") == 1
    for reason in ("stop", "length", "abort", "error"):
        assert now("vllm:request_success_total", finished_reason=reason) == 0
    for family in now.families.values():
        assert family.documentation and family.type in ("counter", "gauge", "histogram")
        if family.name.startswith("vllm:"):
            assert all(s.labels["model_name"] == "random" and s.labels["engine"] == "0" for s in family.samples)
    assert now("http_requests_total", handler="/chat/completions", method="POST", status="200") == 0


def test_token_counters_are_the_sum_of_the_usages(metered):
    """Streams, several answers to one prompt, a stop text, reasoning and reuse included."""
    bodies = [
        {"max_tokens": 9}, {"max_tokens": 20, "n": 3, "seed": 5, "temperature": 1.0}, {"max_tokens": 0},
        {"max_tokens": 30, "stop": ["e"], "chat_template_kwargs": {"enable_thinking": False}}, {"max_tokens": 9},
        {"max_tokens": 12, "stream": True, "stream_options": {"include_usage": True}},
    ]
    total = {"prompt": 0, "completion": 0, "reasoning": 0, "cached": 0}
    for fields in bodies:
        messages = [{"role": "user", "content": "Tell me a long story, please. " * 20}]
        with metered.stream("POST", CHAT, json={"messages": messages, "temperature": 0} | fields) as reply:
            reply.read()
        assert reply.status_code == 200
        if fields.get("stream"):
            usage = httpx.Response(200, text=reply.text.split("data: ")[-2]).json()["usage"]
        else:
            usage = reply.json()["usage"]
        total["prompt"] += usage["prompt_tokens"]
        total["completion"] += usage["completion_tokens"]
        total["reasoning"] += usage["completion_tokens_details"]["reasoning_tokens"]
        total["cached"] += usage["prompt_tokens_details"]["cached_tokens"]
    now = Scrape(metered)
    assert now("vllm:prompt_tokens_total") == total["prompt"]
    assert now("vllm:generation_tokens_total") == total["completion"]
    assert now("server_reasoning_tokens_total") == total["reasoning"]
    assert now("server_cached_tokens_total") == total["cached"] > 0
    assert now("vllm:request_params_n_sum") == 8 and now("vllm:request_params_n_count") == len(bodies)
    ended = sum(now("vllm:request_success_total", finished_reason=reason) for reason in ("stop", "length"))
    assert ended == 8 and now("vllm:request_success_total") == 8
    assert now("vllm:prefix_cache_hits_total") <= now("vllm:prefix_cache_queries_total")


def test_what_was_computed_and_what_was_reused_add_up(metered):
    complete(metered, tokens(300))
    complete(metered, tokens(300))
    complete(metered, tokens(300, 2))
    now = Scrape(metered)
    assert now("vllm:prefix_cache_queries_total") == 3 * 299
    assert now("vllm:prefix_cache_hits_total") == 256
    assert now("server_computed_tokens_total", phase="prefill") == 3 * 300 - 256
    assert now("vllm:iteration_tokens_total_sum") == now("server_computed_tokens_total")
    assert now("vllm:request_prompt_tokens_sum") == 900 and now("vllm:request_prompt_tokens_count") == 3
    assert now("vllm:e2e_request_latency_seconds_count") == 3
    assert now("server_cache_checkpoints", tier="device") > 0
    assert now("server_cache_bytes", tier="device") > 0
    assert now("server_memory_bytes") <= now("server_memory_limit_bytes")


def test_misses_by_reason(metered):
    expected = [
        ("prompt_short", tokens(50), {}), ("cache_empty", tokens(300), {}), ("complete", tokens(300), {}),
        ("salt_unknown", tokens(300), {"cache_salt": "a"}), ("end_of_stored", tokens(300) + tokens(200, 5), {}),
        ("no_state", tokens(200) + tokens(100, 6), {}), ("diverged", tokens(199) + tokens(100, 7), {}),
        ("diverged", tokens(300, 8), {}),
    ]
    for reason, prompt, fields in expected:
        reply = complete(metered, prompt, timings=True, **fields)
        said = dict(part.strip().split("=") for part in reply.headers["x-sluice-reuse"].split(";"))
        told = reply.json()["choices"][0]["timings"]["reuse"]
        assert said["reason"] == told["reason"] == reason, (said, reason)
        assert int(said["prompt"]) == len(prompt)
        cached = reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert int(said["reused"]) == told["reused"] == cached
        assert said.get("diverged_at") == (None if told["diverged_at"] is None else str(told["diverged_at"]))
    assert told["diverged_at"] == next(i for i, t in enumerate(tokens(300, 8)) if t != tokens(300)[i])
    now = Scrape(metered)
    reasons = [reason for reason, _, _ in expected]
    for reason in set(reasons) | {"cache_off", "state_evicted"}:
        assert now("server_cache_lookups_total", reason=reason) == reasons.count(reason), reason
    assert now("server_cache_lookups_total", reason="complete", result="hit") == 1
    assert now("server_cache_lookups_total", reason="salt_unknown", result="miss") == 1


def test_where_a_prompt_left_the_stored_one(metered):
    complete(metered, tokens(400))
    for at in (130, 200, 255, 256):
        changed = tokens(400)
        changed[at] += 1
        reply = complete(metered, changed)
        assert f"diverged_at={at}" in reply.headers["x-sluice-reuse"]


def test_the_turn_that_changed_is_named(metered):
    messages = [{"role": role, "content": f"{i}: " + "so it goes, and so on. " * 20}
                for i, role in enumerate(["system", "user", "assistant", "user", "assistant", "user"])]
    body = {"messages": messages, "max_tokens": 1}
    metered.post(CHAT, json=body)
    for turn in (4, 2, 0):
        messages[turn]["content"] = "Changed. " + messages[turn]["content"]
        reply = metered.post(CHAT, json=body)
        assert f"; turn={turn}" in reply.headers["x-sluice-reuse"], reply.headers["x-sluice-reuse"]


def test_a_stream_tells_its_reuse_in_its_timings(metered):
    body = {"messages": [{"role": "user", "content": "Hello there. " * 40}], "max_tokens": 3, "stream": True}
    for reused in (False, True):
        reply = metered.post(CHAT, json=body | {"timings": True})
        assert "x-sluice-reuse" not in reply.headers
        told = [part for part in reply.text.split("\n\n") if '"timings"' in part]
        assert len(told) == 1 and ('"reason":"complete"' in told[0]) == reused
    assert '"timings"' not in metered.post(CHAT, json=body).text


def test_gauges_fall_back_to_zero_when_a_client_goes(metered):
    def is_busy(now):
        running, waiting = now("vllm:num_requests_running"), now("vllm:num_requests_waiting")
        return running == 4 and waiting == 4 and now("vllm:kv_cache_usage_perc") > 0

    body = {"prompt": tokens(100), "max_tokens": 3900, "n": 8, "ignore_eos": True, "stream": True}
    with metered.stream("POST", "/v1/completions", json=body) as reply:
        chunks = reply.iter_raw()  # the stream lives as long as this does
        next(chunks)
        assert eventually(lambda: is_busy(Scrape(metered)))
    assert eventually(lambda: Scrape(metered)("vllm:num_requests_running") == 0)
    assert eventually(lambda: Scrape(metered)("server_client_disconnects_total") == 1)
    now = Scrape(metered)
    assert now("vllm:kv_cache_usage_perc") == now("vllm:num_requests_waiting") == 0
    assert now("vllm:request_success_total", finished_reason="abort") > 0
    assert now("vllm:request_success_total") == 8


def test_no_label_carries_what_a_client_sent(metered):
    metered.get("/v1/secret-path?secret-query")
    metered.request("SECRET", "/v1/models")
    metered.post(CHAT, json={"model": "secret-model", "messages": [{"role": "user", "content": "secret-text"}],
                             "max_tokens": 1, "cache_salt": "secret-salt", "user": "secret-user"},
                 headers={"x-request-id": "secret-id"})
    text = metered.get("/metrics").text
    assert "secret" not in text.lower()
    assert 'http_requests_total{handler="(unknown)",method="GET",status="404"} 1' in text
