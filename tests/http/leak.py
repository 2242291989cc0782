"""Thousands of short requests of every kind: the memory of the server must not grow once its stores are full."""
import random
import threading

from memory_watch import MIB, MemoryWatch
from server_process import ServerProcess, eventually
from wire import Wire, request_bytes

SERVER = ("--context", 1024, "--sequences", 4, "--cache-memory", 4, "--log-level", "warning", "--enable-debug")
SECONDS_MAX = 300
USER = [{"role": "user", "content": "Hello!"}]
TOOL = {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}


def short_request(dice, number):
    """(method, path, body, expected status). Texts, salts and grammars differ from request to request."""
    said = [{"role": "user", "content": f"{number} " + "word " * dice.randrange(60)}]
    long = {"messages": said, "max_tokens": 3}
    return dice.choice([
        ("POST", "/v1/chat/completions", long, 200), ("POST", "/v1/chat/completions", long | {"stream": True, "n": 2}, 200),
        ("POST", "/v1/chat/completions", long | {"cache_salt": f"salt {number}"}, 200),
        ("POST", "/v1/chat/completions", long | {"guided_regex": f"[a-z]{{1,9}}{number}"}, 200),
        ("POST", "/v1/chat/completions", long | {"tools": [{"type": "function", "function": TOOL}], "tool_choice": "required"}, 200),
        ("POST", "/v1/chat/completions", long | {"guided_regex": "["}, 400), ("POST", "/v1/chat/completions", b"{" * 200, 400),
        ("POST", "/v1/completions", {"prompt": [number % 1000] * dice.randrange(1, 90), "max_tokens": 3, "logprobs": 3}, 200),
        ("POST", "/v1/responses", {"input": f"{number}", "max_output_tokens": 3}, 200),
        ("POST", "/v1/responses", {"input": said, "max_output_tokens": 3, "stream": True}, 200),
        ("POST", "/v1/responses", {"input": "x", "previous_response_id": f"resp_{number}"}, 400),
        ("POST", "/v1/messages", {"messages": said, "max_tokens": 3, "stream": True}, 200),
        ("POST", "/v1/messages", {"messages": [{"role": "no"}]}, 400), ("POST", "/v1/messages/count_tokens", {"messages": said}, 200),
        ("POST", "/tokenize", {"prompt": "word " * 500}, 200), ("GET", f"/nothing/{number}", None, 404), ("GET", "/metrics", None, 200),
        ("POST", "/debug/parse", {"text": f"<tool_call>\n<function=look>\n<parameter=at>{number}</parameter>", "tools": [TOOL]}, 200),
    ])


def send_all(server, numbers, seed, problems):
    dice = random.Random(seed)
    wire = Wire(server.port, SECONDS_MAX)
    for number in numbers:
        method, path, body, expected = short_request(dice, number)
        data = request_bytes(path, body, method)
        if dice.random() < 0.1:  # hangs up
            wire.send(data[:dice.randrange(len(data))] if dice.random() < 0.5 else data)
            wire.__exit__()
            wire = Wire(server.port, SECONDS_MAX)
            continue
        wire.send(data)
        reply = wire.reply()
        if reply.status != expected:
            problems.append(f"{path} answered {reply.status}, want {expected}: {reply.text[:300]}")
        if reply.headers.get("connection") == "close" or dice.random() < 0.05:
            wire.__exit__()
            wire = Wire(server.port, SECONDS_MAX)
    wire.__exit__()


def leak(count, seed, threads=8):
    """The report. With fewer than 10,000 requests the stores are still filling, and growth means nothing."""
    server, problems = ServerProcess(*SERVER), []
    watch = MemoryWatch(server, threads)
    numbers = iter(range(count))  # next() is one step
    workers = [threading.Thread(target=send_all, args=(server, numbers, seed * 1009 + worker, problems)) for worker in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    def idle():
        with Wire(server.port, SECONDS_MAX) as wire:
            wire.send(request_bytes("/health", None, "GET"))
            return wire.reply().body.endswith(b'"queue":0,"running":0}')

    if not eventually(idle, 60):
        problems.append("requests are still running")
    watch.stop()
    if next(numbers, None) is not None:
        problems.append("a client stopped early")
    if watch.peak > watch.limit():
        problems.append(f"memory: {watch.peak / MIB:.1f} MiB, at most expected: {watch.limit() / MIB:.1f}")
    if count >= 10000 and watch.growth() > MIB:
        problems.append(f"memory grew by {watch.growth() / MIB:.2f} MiB in the second half")
    if server.stop() != 0:
        problems.append("the server ended badly: " + "".join(server.log)[-2000:])
    return {"requests": count} | watch.report() | {"problems": problems}
