#!/usr/bin/env python3
"""What HTTP costs beside the engine: per streamed token, and for a prompt of 1 MB.

    http_cost.py [--model DIRECTORY] [--tokens 2000] [--rounds 5]

CPU seconds are those of the whole server process, from /proc; the difference between a stream, a whole reply and the
engine's own time is what the text, the JSON and the sockets take. Prints JSON; use a quiet machine.
"""
import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from server_process import ServerProcess  # noqa: E402
from wire import Wire, request_bytes  # noqa: E402

SECONDS_MAX = 600
PROMPT_BYTES = 1_000_000


def cpu_seconds(pid):
    """User and system time of all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Meter:
    """Wall and CPU seconds of one request on an open connection."""

    def __init__(self, server):
        self.pid = server.process.pid
        self.wire = Wire(server.port, SECONDS_MAX)

    def ask(self, path, body):
        data = request_bytes(path, body)
        cpu, wall = cpu_seconds(self.pid), time.monotonic()
        self.wire.send(data)
        reply = self.wire.reply()
        wall, cpu = time.monotonic() - wall, cpu_seconds(self.pid) - cpu
        assert reply.status == 200, reply.text[:500]
        return wall, cpu, reply


def timings_of(reply, streamed):
    if not streamed:
        return json.loads(reply.text)["timings"]
    last = next(block for block in reversed(reply.text.split("\n\n")) if '"timings"' in block)
    return json.loads(last.removeprefix("data: "))["timings"]


def token_cost(meter, tokens, rounds):
    """Microseconds for each token of an answer, whole and streamed."""
    found = {}
    for name, stream in (("whole", False), ("streamed", True)):
        rows = []
        for _ in range(rounds):
            body = {"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": tokens, "ignore_eos": True, "temperature": 0,
                    "stream": stream, "timings": True, "enable_thinking": False}
            wall, cpu, reply = meter.ask("/v1/chat/completions", body)
            timings = timings_of(reply, stream)
            engine = (timings["queue_ms"] + timings["prefill_ms"] + timings["decode_ms"]) / 1000
            rows.append((wall * 1e6 / tokens, engine * 1e6 / tokens, cpu * 1e6 / tokens, len(reply.body) / tokens))
        wall, engine, cpu, size = (statistics.median(column) for column in zip(*rows))
        found[name] = {"wall_us": round(wall, 1), "engine_us": round(engine, 1), "beyond_engine_us": round(wall - engine, 1),
                       "process_cpu_us": round(cpu, 1), "bytes": round(size)}
    return found


def prompt_cost(meter, rounds):
    """Milliseconds for a prompt of PROMPT_BYTES: parsed, rendered, encoded, and no more."""
    text = ("The heron stands in the reeds and waits for the fish that swim below. " * (PROMPT_BYTES // 70 + 1))[:PROMPT_BYTES]
    found = {}
    for name, path, body in (
            ("tokenize", "/tokenize", {"prompt": text}), ("detokenize", "/detokenize", None),
            ("apply_template", "/apply-template", {"messages": [{"role": "user", "content": text}]}),
            ("count_tokens", "/v1/messages/count_tokens", {"messages": [{"role": "user", "content": text}]}),
            ("count_tokens_of_a_conversation", "/v1/messages/count_tokens", {"messages": [
                {"role": "assistant" if i % 2 else "user", "content": text[i * 1000:(i + 1) * 1000]} for i in range(1000)]})):
        rows = []
        for _ in range(rounds):
            wall, cpu, reply = meter.ask(path, body or {"tokens": tokens})
            rows.append((wall * 1000, cpu * 1000))
        if name == "tokenize":
            tokens = json.loads(reply.text)["tokens"]
            found["tokens"] = len(tokens)
        found[name] = {"wall_ms": round(statistics.median(row[0] for row in rows), 1), "cpu_ms": round(statistics.median(row[1] for row in rows), 1)}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="default: the random model of the tests")
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    server = ServerProcess("--context", 4096, "--log-level", "error", model=given.model)
    try:
        meter = Meter(server)
        report = {"per_token": token_cost(meter, given.tokens, given.rounds), "prompt_of_1_mb": prompt_cost(meter, given.rounds)}
    finally:
        server.stop()
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
