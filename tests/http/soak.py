#!/usr/bin/env python3
"""Many clients at once, some of them unpleasant, for a long time; see README.md of this folder.

    soak.py --minutes 10 --streams 64 --seed 1       # until the time is over
    soak.py --requests 500 --streams 32 --seed 1     # until so many were sent
    soak.py --leak 10000                             # short requests of every kind, memory sampled

Prints a report as JSON; the exit code is 0 when nothing was wrong.
"""
import argparse
import collections
import itertools
import json
import random
import sys
import threading
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import httpx  # noqa: E402
from api_description import check_reply  # noqa: E402
from memory_watch import MIB, MemoryWatch  # noqa: E402
from mixed_requests import essence, mixed_requests  # noqa: E402
from scrape import Scrape  # noqa: E402
from server_process import ServerProcess, eventually  # noqa: E402
from wire import Gone, Wire, request_bytes  # noqa: E402

# Little memory, so that sequences are preempted and prefixes given up.
SERVER = ("--context", 2048, "--sequences", 8, "--kv-tokens", 6144, "--cache-memory", 8, "--queue", 96, "--log-level", "warning")
STUCK_SECONDS = 300  # no reply in this time, whatever else runs: the request is stuck
CHECKED_EVERY = 20  # answers, one is checked against the description: that costs more than the request
BUSY = {429, 503, 529}
GAUGES = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")

# How clients behave, and how often.
BEHAVIOURS = {"steady": 50, "again": 15, "vanishing": 10, "stalling": 8, "garbage": 8, "slow": 5, "impatient": 4}
GARBAGE = [b"\x16\x03\x01\x00\xa5\x01\r\n\r\n", b"nonsense\r\n\r\n", b"\0" * 50, b"GET", b"POST /v1/messages HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
           b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"GET / HTTP/9.9\r\n\r\n",
           b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{\"a\"\xff", b"\r\n" * 40]


class Findings:
    """What all clients saw. Thread rule: any thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self.statuses = collections.Counter()
        self.behaviours = collections.Counter()
        self.essences = {}  # index of the request -> what it was answered
        self.compared = 0
        self.problems = []

    def problem(self, text):
        with self._lock:
            self.problems.append(text[:2000])

    def behaved(self, behaviour):
        with self._lock:
            self.behaviours[behaviour] += 1

    def answered(self, index, path, reply):
        """A complete reply: its status, and if it is an answer, that it is the same as every time."""
        with self._lock:
            self.statuses[reply.status] += 1
            if reply.status in BUSY:
                if "retry-after" not in reply.headers:
                    self.problems.append(f"{reply.status} without retry-after")
                return
            if reply.status != 200:
                self.problems.append(f"{path} answered {reply.status}: {reply.text[:500]}")
                return
        if self.compared % CHECKED_EVERY == CHECKED_EVERY - 1:
            check_reply("POST", path, reply.status, reply.headers, reply.text)
        said = essence(path, reply)
        with self._lock:
            if said is None:
                self.problems.append(f"{path}: an answer without an end: {reply.text[-300:]}")
            elif said != self.essences.setdefault(index, said):
                self.problems.append(f"request {index}: {said} and {self.essences[index]}")
            self.compared += 1


class Client:
    """One of the streams: sends requests one after the other, each in one of the ways of BEHAVIOURS."""

    def __init__(self, number, server, requests, findings, seed):
        self.port, self.requests, self.findings = server.port, requests, findings
        self.dice = random.Random(seed * 1009 + number)
        self.wire = None

    def run(self, tickets, stopped):
        for _ in tickets:
            if stopped.is_set():
                break
            behaviour = self.dice.choices(list(BEHAVIOURS), BEHAVIOURS.values())[0]
            index = self.dice.randrange(len(self.requests))
            try:
                getattr(self, behaviour)(index, *self.requests[index])
                self.findings.behaved(behaviour)
            except Gone:
                self.close()
                self.findings.problem(f"{behaviour}: the server hung up on request {index}")
            except Exception as error:
                self.close()
                self.findings.problem(f"{behaviour}: request {index}: {type(error).__name__}: {error}")
        self.close()

    def close(self):
        if self.wire is not None:
            self.wire.__exit__()
        self.wire = None

    def connect(self, **options):
        self.close()
        self.wire = Wire(self.port, STUCK_SECONDS, **options)
        return self.wire

    def finish(self, index, path):
        reply = self.wire.reply()
        self.findings.answered(index, path, reply)
        if reply.headers.get("connection") == "close":
            self.close()

    def steady(self, index, path, body):
        self.connect().send(request_bytes(path, body))
        self.finish(index, path)
        self.close()

    def again(self, index, path, body):
        """On the connection that is there."""
        wire = self.wire or self.connect()
        wire.send(request_bytes(path, body))
        self.finish(index, path)

    def vanishing(self, _, path, body):
        data = request_bytes(path, body)
        wire = self.connect()
        wire.send(data if self.dice.random() < 0.7 else data[:self.dice.randrange(len(data))])
        for _ in range(self.dice.randrange(3) if data else 0):
            time.sleep(self.dice.random() * 0.1)
        self.close()

    def stalling(self, index, path, body):
        wire = self.connect(receive_bytes=2048)
        wire.send(request_bytes(path, body))
        wire.receive()
        time.sleep(self.dice.random() * 2)
        if self.dice.random() < 0.5:
            self.finish(index, path)
        self.close()

    def garbage(self, index, path, body):
        wire = self.connect()
        data = self.dice.choice(GARBAGE) if self.dice.random() < 0.7 else self.mutated(request_bytes(path, body))
        try:
            wire.send(data)
            if self.dice.random() < 0.5:
                time.sleep(self.dice.random() * 0.1)
        except Gone:
            pass  # as it should
        self.close()

    def mutated(self, data):
        data = bytearray(data)
        for _ in range(self.dice.randrange(1, 6)):
            data[self.dice.randrange(len(data))] = self.dice.randrange(256)
        return bytes(data)

    def slow(self, index, path, body):
        data = request_bytes(path, body)
        wire = self.connect()
        for begin in range(0, len(data), len(data) // 5 + 1):
            wire.send(data[begin:begin + len(data) // 5 + 1])
            time.sleep(self.dice.random() * 0.05)
        self.finish(index, path)
        self.close()

    def impatient(self, index, path, body):
        """Sends it, hangs up and sends it again at once."""
        for _ in range(self.dice.randrange(1, 4)):
            self.connect().send(request_bytes(path, body))
        self.steady(index, path, body)


def gauges(server):
    now = Scrape(httpx.Client(base_url=server.url, timeout=STUCK_SECONDS))
    return {name: now(name) for name in GAUGES}


def solo_differences(requests, findings):
    """Each request that was answered, once more and alone, on a server that has seen nothing."""
    server = ServerProcess(*SERVER)
    for index, said in sorted(findings.essences.items()):
        path, body = requests[index]
        with Wire(server.port, STUCK_SECONDS) as wire:
            wire.send(request_bytes(path, body))
            alone = essence(path, wire.reply())
        if alone != said:
            findings.problem(f"request {index} alone: {alone}; among others: {said}")
    if server.stop() != 0:
        findings.problem("the fresh server ended badly")


def soak(streams, seed, minutes=None, request_count=None, distinct=120):
    """The report. Ends after `minutes`, or after `request_count` requests."""
    requests = mixed_requests(seed, distinct)
    server, findings, stopped = ServerProcess(*SERVER), Findings(), threading.Event()
    watch = MemoryWatch(server, streams)
    count = itertools.count() if request_count is None else iter(range(request_count))  # next() is one step
    clients = [Client(number, server, requests, findings, seed) for number in range(streams)]
    threads = [threading.Thread(target=client.run, args=(count, stopped)) for client in clients]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    if minutes is not None:
        stopped.wait(minutes * 60)
        stopped.set()
    for thread in threads:
        thread.join()
    if not eventually(lambda: not any(gauges(server).values()), 60):
        findings.problem(f"gauges at the end: {gauges(server)}")
    watch.stop()
    memory = watch.report()
    if watch.peak > watch.limit():
        findings.problem(f"memory: {watch.peak / MIB:.1f} MiB, at most expected: {watch.limit() / MIB:.1f}")
    if minutes is not None and watch.growth() > watch.at_start * 0.05:
        findings.problem(f"memory grew by {watch.growth() / MIB:.1f} MiB after the warm-up")
    if server.stop() != 0:
        findings.problem("the server ended badly: " + "".join(server.log)[-2000:])
    solo_differences(requests, findings)
    return {"seconds": round(time.monotonic() - begin), "behaviours": dict(findings.behaviours), "statuses": dict(findings.statuses),
            "answers_compared": findings.compared, "requests_run_alone": len(findings.essences)} | memory | {"problems": findings.problems}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--requests", type=int)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--leak", type=int, metavar="N", help="N short requests instead")
    given = parser.parse_args()
    if given.leak:
        from leak import leak
        report = leak(given.leak, given.seed)
    elif given.minutes or given.requests:
        report = soak(given.streams, given.seed, given.minutes, given.requests)
    else:
        parser.error("want --minutes, --requests or --leak")
    print(json.dumps(report, indent=1))
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
