"""`sluice bench --url`: every request is answered, failed or interrupted, and counted. Never how fast anything was."""
import http.server
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading

import pytest
from program import RUN_SECONDS_MAX, assert_error, sluice, start
from test_data import EMBEDDED, ROOT

sys.path.append(str(ROOT / "tests" / "http"))

from server_process import ServerProcess  # noqa: E402

MEMBERS = {"url", "model", "workload", "loop", "concurrency", "requests", "failures", "seconds", "requests_per_s",
           "prompt_tok_per_s", "output_tok_per_s", "tokens", "ttft_ms", "inter_token_ms", "end_to_end_ms", "goodput",
           "cache", "late_starts"}


@pytest.fixture(scope="module")
def embedded():
    process = ServerProcess("--context", 8192, "--sequences", 4, "--threads", 1, model=EMBEDDED)
    yield process
    assert process.stop() == 0, "".join(process.log)


def chat_stream(words, usage=True):
    """The bytes of an answer of so many words, as servers of several makers send them."""
    events = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": "word "}}]} for _ in range(words)]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if usage:
        events.append({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": words}})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


class FakeServer:
    """Answers chat requests by answer(number of the request) -> (status, content type, body); no status: hangs up."""

    def __init__(self, answer, certificate=None):
        fake = self
        self.bodies, self.keys, self.lock = [], set(), threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                fake.keys.add(self.headers.get("Authorization"))
                self.reply(200, "application/json", json.dumps({"data": [{"id": "fake"}]}))

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with fake.lock:
                    fake.bodies.append(body)
                    number = len(fake.bodies) - 1
                fake.keys.add(self.headers.get("Authorization"))
                status, kind, text = answer(number)
                if status:
                    self.reply(status, kind, text)
                else:
                    self.wfile.write(text.encode())
                    self.close_connection = True

            def reply(self, status, kind, text):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def fine(_):
    return 200, "text/event-stream", chat_stream(3)


def bench(url, *arguments, code=0, **environment):
    """The report, of a run that ended with this code."""
    run = sluice("bench", "--url", url, *arguments, "--json", **environment)
    assert run.returncode == code, run.stderr
    assert run.stdout.count("\n") == 1
    report = json.loads(run.stdout)
    assert set(report) == MEMBERS
    return report


def test_an_agent_meets_its_own_prefixes(embedded):
    report = bench(embedded.url, "--workload", "agent", "--requests", 6, "--turns", 3, "--concurrency", 2,
                   "--max-tokens", 8, "--system-tokens", 100, "--result-words", 20)
    # The two users share six requests: one who is through with three turns begins again if the other is slow.
    assert report["requests"].pop("conversations") in (2, 3)
    assert report["requests"] == {"answered": 6, "failed": 0, "interrupted": 0}
    assert report["failures"] == [] and report["loop"] == "closed" and report["concurrency"] == 2
    assert report["tokens"]["replies"] == 6 and 0 < report["tokens"]["output"] <= 48
    assert report["cache"]["replies"] == 6 and 0 < report["cache"]["hit_share"] < 1
    assert report["cache"]["prompt_tokens"] == report["tokens"]["prompt"] > 600
    assert report["requests_per_s"] == pytest.approx(6 / report["seconds"])
    assert report["output_tok_per_s"] == pytest.approx(report["tokens"]["output"] / report["seconds"])
    for name in ("ttft_ms", "inter_token_ms", "end_to_end_ms"):
        figures = report[name]
        assert 0 <= figures["p50"] <= figures["p95"] <= figures["p99"] <= figures["max"], name
    assert report["ttft_ms"]["max"] <= report["end_to_end_ms"]["max"] and report["goodput"] is None


def test_an_open_loop_and_the_goals(embedded):
    report = bench(embedded.url, "--workload", "prompts", "--requests", 4, "--rate", 50, "--prompt-words", 10,
                   "--max-tokens", 4, "--slo-ttft", 600000, "--slo-itl", 600000)
    assert report["requests"] == {"answered": 4, "failed": 0, "interrupted": 0, "conversations": 4}
    assert report["loop"] == "open" and report["goodput"]["requests"] == 4
    report = bench(embedded.url, "--workload", "chat", "--requests", 2, "--prompt-words", 10, "--max-tokens", 4,
                   "--slo-ttft", 0)
    assert report["goodput"]["requests"] == 0 and report["goodput"]["slo_itl_ms"] is None


def test_a_trace_is_sent_as_it_was_written(tmp_path):
    def body(text):
        return {"messages": [{"role": "user", "content": text}], "seed": 5}
    trace = tmp_path / "trace.jsonl"
    lines = [{"at": 0.05, "conversation": "x", "body": body("x1")}, {"at": 0, "body": body("alone")},
             {"at": 0.05, "conversation": "x", "body": body("x2")}]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with FakeServer(fine) as fake:
        report = bench(fake.url, "--trace", trace)
        assert report["requests"] == {"answered": 3, "failed": 0, "interrupted": 0, "conversations": 2}
        said = [sent["messages"][0]["content"] for sent in fake.bodies]
        assert sorted(said) == ["alone", "x1", "x2"] and said.index("x1") < said.index("x2")
        assert all(sent["seed"] == 5 and sent["model"] == "fake" and sent["stream"] for sent in fake.bodies)
    assert report["workload"] == f"trace {trace}" and report["cache"] is None
    trace.write_text(trace.read_text(encoding="utf-8") + '{"at": "soon", "body": {}}\n', encoding="utf-8")
    assert_error(sluice("bench", "--url", fake.url, "--trace", trace), 1, str(trace), "line 4", "at:")


def test_the_same_seed_says_the_same():
    said = []
    for seed in (7, 7, 8):
        with FakeServer(fine) as fake:
            bench(fake.url, "--workload", "agent", "--requests", 5, "--turns", 3, "--seed", seed)
            said.append(fake.bodies)
    assert said[0] == said[1] != said[2]
    assert [len(body["messages"]) for body in said[0]] == [2, 4, 6, 2, 4]
    assert said[0][2]["messages"][:4] == said[0][1]["messages"]
    assert said[0][0]["messages"][0] == said[0][3]["messages"][0] and said[0][0]["tools"]


def test_failures_are_counted_by_kind():
    answers = [(429, "application/json", '{"error": {"message": "come back"}}'), (500, "text/plain", "broken"),
               (200, "text/event-stream", "data: garbage\n\n"), (0, "", "no HTTP\r\n\r\n"), (0, "", ""),
               (200, "text/event-stream", chat_stream(2, usage=False))]
    with FakeServer(lambda number: answers[number]) as fake:
        report = bench(fake.url, "--workload", "prompts", "--requests", 6)
    assert report["requests"] == {"answered": 1, "failed": 5, "interrupted": 0, "conversations": 6}
    failures = {failure["kind"]: failure for failure in report["failures"]}
    assert {kind: failure["count"] for kind, failure in failures.items()} == {"429": 1, "500": 1, "corrupt_data": 2, "io": 1}
    assert failures["429"]["example"] == "come back" and failures["500"]["example"] == "broken"
    assert report["tokens"] == {"prompt": 0, "output": 0, "replies": 0} and report["cache"] is None


def test_a_server_that_refuses_everything_is_an_error():
    with FakeServer(lambda _: (429, "application/json", "{}")) as fake:
        run = sluice("bench", "--url", fake.url, "--requests", 2, "--concurrency", 2)
    assert run.returncode == 1 and "0 answered, 2 failed" in run.stdout and "2 x 429" in run.stdout
    assert "sluice: error: --url" in run.stderr and "not one request" in run.stderr


def test_the_table_and_the_key():
    with FakeServer(fine) as fake:
        run = sluice("bench", "--url", fake.url + "/v1/", "--requests", 3, "--api-key", "secret")
        assert fake.keys == {"Bearer secret"}
        assert run.returncode == 0, run.stderr
        assert run.stderr == "" and "secret" not in run.stdout
        for part in ("3 answered, 0 failed", "first token", "between tokens", "model fake", "the server does not say"):
            assert part in run.stdout
        fake.bodies.clear()
        assert bench(fake.url, "--requests", 1, "--model", "mine")["model"] == "mine"
        assert fake.bodies[0]["model"] == "mine"


def test_time_ends_a_run():
    with FakeServer(fine) as fake:
        report = bench(fake.url, "--seconds", 0.5, "--workload", "prompts", "--prompt-words", 5)
        assert report["requests"]["answered"] == len(fake.bodies) >= 1


def test_interrupted_runs_print_what_there_is():
    asked, end = threading.Event(), threading.Event()

    def answer(number):
        if number >= 2:
            asked.set()
            end.wait(RUN_SECONDS_MAX)
        return fine(number)
    with FakeServer(answer) as fake:
        program = start("bench", "--url", fake.url, "--json")
        assert asked.wait(RUN_SECONDS_MAX)
        program.send_signal(signal.SIGINT)
        out, _ = program.communicate(timeout=RUN_SECONDS_MAX)
        end.set()
    report = json.loads(out)
    assert program.returncode == 0
    assert report["requests"]["answered"] == 2 and report["requests"]["interrupted"] == 1


def test_certificates_are_verified(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                           "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                           "-keyout", str(key), "-out", str(certificate)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    with FakeServer(fine, (certificate, key)) as fake:
        url = f"https://localhost:{fake.port}"
        trusted = {"SSL_CERT_FILE": str(certificate)}
        assert bench(url, "--requests", 3, **trusted)["requests"]["answered"] == 3
        assert_error(sluice("bench", "--url", url), 1, "certificate verify failed")
        other = f"https://127.0.0.1:{fake.port}"
        assert_error(sluice("bench", "--url", other, **trusted), 1, "certificate verify failed")


def test_a_server_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert_error(sluice("bench", "--url", f"http://127.0.0.1:{port}"), 1, "--url", str(port), "refused")


@pytest.mark.parametrize("arguments, parts", [
    (["--rate", "3"], ["--rate", "--url"]),
    (["--url", "http://a", "--shape", "qwen3.5-0.8b"], ["--shape", "--url"]),
    (["--url", "http://a", str(EMBEDDED)], ["MODEL", "--url"]),
    (["--url", "http://a", "--workload", "x"], ["--workload", "x", "agent"]),
    (["--url", "http://a", "--concurrency", "0"], ["--concurrency", "from 1 to 1024"]),
    (["--url", "http://a", "--rate", "0"], ["--rate", "0"]),
    (["--url", "http://a", "--requests", "many"], ["--requests", "many"]),
    (["--url", "http://a", "--trace", "t", "--rate", "1"], ["--trace", "--rate"]),
    (["--url", "http://a", "--trace", "t", "--turns", "1"], ["--trace", "--turns"]),
])
def test_wrong_usage(arguments, parts):
    assert_error(sluice("bench", *arguments), 2, *parts)


@pytest.mark.parametrize("arguments, parts", [
    (["--url", "localhost:8080"], ["--url", "'localhost:8080'", "http://"]),
    (["--url", "http://a", "--trace", "nowhere"], ["nowhere"]),
    (["--url", "http://a", "--trace", "/"], ["/", "regular file"]),
    (["--url", "http://a", "--trace", "/dev/null"], ["/dev/null", "regular file"]),
    (["--url", "http://a", "--workload", "prompts", "--turns", "2"], ["--turns", "prompts"]),
    (["--url", "http://a", "--workload", "chat", "--result-words", "2"], ["--result-words", "chat"]),
])
def test_what_cannot_be_asked_is_an_error(arguments, parts):
    assert_error(sluice("bench", *arguments), 1, *parts)
