"""The soak and leak programs, for some seconds: that they find nothing wrong, and that they would."""
import json

from leak import leak
from memory_watch import planned_bytes
from mixed_requests import essence, mixed_requests
from soak import Findings, soak
from wire import Reply


def test_a_short_soak():
    report = soak(streams=24, seed=2, request_count=140, distinct=40)
    assert report["problems"] == []
    assert sum(report["behaviours"].values()) == 140
    assert len(report["behaviours"]) >= 6 and report["requests_run_alone"] >= 30
    assert report["statuses"][200] >= 80


def test_few_short_requests():
    assert leak(600, seed=3)["problems"] == []


def test_requests_are_of_all_kinds_and_repeat():
    requests = mixed_requests(1, 200)
    assert requests == mixed_requests(1, 200) != mixed_requests(2, 200)
    assert {path for path, _ in requests} == {"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"}
    fields = {name for _, body in requests for name in body}
    assert {"tools", "guided_regex", "response_format", "n", "seed", "stop", "priority", "cache_salt", "stop_sequences",
            "logprobs", "thinking"} <= fields


def test_the_plan_is_read():
    line = ("memory: weights 2.55 MiB, KV cache 16.0 MiB (16384 tokens), states 2.01 MiB, 2.00 GiB more for kept prefixes, "
            "logits 32.0 KiB, workspace 10.1 MiB\n")
    plan = planned_bytes(["cpu\n", line])
    assert plan["kept"] == 2 << 30 and plan["logits"] == 32 << 10 and plan["KV cache"] == 16 << 20
    assert len(plan) == 6


def test_differences_are_found():
    def reply(text, status=200, **headers):
        body = {"choices": [{"index": 0, "message": {"content": text}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
        return Reply(status, {"content-type": "application/json"} | headers, json.dumps(body).encode())

    path, findings = "/v1/chat/completions", Findings()
    assert essence(path, reply("a")) == essence(path, reply("a")) != essence(path, reply("b"))
    for said, problems in ((reply("a"), 0), (reply("a"), 0), (reply("b"), 1), (reply("", 500), 2), (reply("", 429), 3),
                           (reply("", 429, **{"retry-after": "1"}), 3)):
        findings.answered(0, path, said)
        assert len(findings.problems) == problems
    cut = Reply(200, {"content-type": "text/event-stream"}, b'data: {"choices":[]}\n\n')
    findings.answered(1, path, cut)
    assert "without an end" in findings.problems[-1]
