#!/usr/bin/env python3
"""Far more clients than a small queue holds: who is refused, how politely, and how /health does meanwhile.

    overload.py --connections 500 --queue 8 --seconds 20

Prints a report as JSON; the exit code is 0 when nothing was wrong.
"""
import argparse
import collections
import json
import sys
import threading
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import openai  # noqa: E402
from server_process import ServerProcess, eventually  # noqa: E402
from wire import Wire, request_bytes  # noqa: E402

SECONDS_MAX = 300
ASK = {"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 24, "temperature": 0, "ignore_eos": True}
CHAT = request_bytes("/v1/chat/completions", ASK)
HEALTH = request_bytes("/health", None, "GET")


class Crowd:
    """Connections that each ask again and again, with the pauses that the server asks for."""

    def __init__(self, server, connections):
        self.server = server
        self.statuses = collections.Counter()
        self.problems = []
        self.answers = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._everyone_asked = threading.Barrier(connections + 1)
        self._threads = [threading.Thread(target=self._run, args=(asks,), daemon=True) for asks in [1] * connections]
        for thread in self._threads:
            thread.start()

    def _run(self, asks):
        try:
            with Wire(self.server.port, SECONDS_MAX) as wire:
                self._everyone_asked.wait(SECONDS_MAX)  # all are connected, and send together
                while asks > 0 or not self._ended.is_set():
                    asks -= 1
                    wire.send(CHAT)
                    self._take(wire.reply())
        except Exception as error:
            with self._lock:
                self.problems.append(f"{type(error).__name__}: {error}")

    def _take(self, reply):
        with self._lock:
            self.statuses[reply.status] += 1
            if reply.status == 200:
                self.answers.add(json.dumps(json.loads(reply.text)["choices"]))
            elif reply.status != 429 or "retry-after" not in reply.headers or reply.headers["x-should-retry"] != "true":
                self.problems.append(f"{reply.status} {reply.headers}: {reply.text[:300]}")
        if reply.status == 429:
            self._ended.wait(float(reply.headers.get("retry-after", 1)))

    def begin(self):
        self._everyone_asked.wait(SECONDS_MAX)

    def end(self):
        self._ended.set()
        for thread in self._threads:
            thread.join(SECONDS_MAX)


def health_milliseconds(server, ended, least):
    """How long /health takes, on one connection, until `ended` and `least` times."""
    taken = []
    with Wire(server.port, SECONDS_MAX) as wire:
        while len(taken) < least or not ended.is_set():
            begin = time.monotonic()
            wire.send(HEALTH)
            assert wire.reply().status == 200
            taken.append((time.monotonic() - begin) * 1000)
            ended.wait(0.005)
    return taken


def percentiles(values):
    ordered = sorted(values)
    return {f"p{share}": round(ordered[min(len(ordered) * share // 100, len(ordered) - 1)], 2) for share in (50, 90, 99)} | {
        "max": round(ordered[-1], 2), "count": len(ordered)}


def overload(connections, queue, seconds):
    """The report. With 0 seconds each connection asks once."""
    server = ServerProcess("--sequences", 2, "--queue", queue, "--context", 256, "--log-level", "error")
    alone = threading.Event()
    alone.set()
    quiet = health_milliseconds(server, alone, 200)
    crowd, ended, problems = Crowd(server, connections), threading.Event(), []
    crowd.begin()
    patient = {}

    def ask_patiently():
        """The official client, which obeys retry-after."""
        with openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=300, timeout=SECONDS_MAX) as client:
            reply = client.chat.completions.with_raw_response.create(
                model="any", messages=ASK["messages"], max_tokens=4, temperature=0)
            patient["retries"], patient["tokens"] = reply.retries_taken, reply.parse().usage.completion_tokens

    sdk = threading.Thread(target=ask_patiently)
    sdk.start()
    timer = threading.Timer(seconds, ended.set)
    timer.start()
    busy = health_milliseconds(server, ended, 100)
    crowd.end()
    sdk.join(SECONDS_MAX)
    problems += crowd.problems
    if len(crowd.answers) != 1:
        problems.append(f"{len(crowd.answers)} different answers to one request")
    if not patient:
        problems.append("the official client got no answer")

    def idle():
        with Wire(server.port, SECONDS_MAX) as wire:
            wire.send(HEALTH)
            return wire.reply().body.endswith(b'"queue":0,"running":0}')

    if not eventually(idle, 60):
        problems.append("requests are left over")
    if server.stop() != 0:
        problems.append("the server ended badly: " + "".join(server.log)[-2000:])
    return {"connections": connections, "queue": queue, "statuses": dict(crowd.statuses), "official_client": patient,
            "health_ms_alone": percentiles(quiet), "health_ms_overloaded": percentiles(busy), "problems": problems[:20]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--queue", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    given = parser.parse_args()
    report = overload(given.connections, given.queue, given.seconds)
    print(json.dumps(report, indent=1))
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
