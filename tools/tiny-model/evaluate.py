"""Scores a model on held-out cases, row by row; greedy answers.

    python tools/tiny-model/evaluate.py --model DIR          # torch, in this process
    python tools/tiny-model/evaluate.py --url http://localhost:8080 --model DIR

Prints a Markdown table; --json FILE keeps every case. With --url a running server answers, by
/v1/chat/completions: it renders the messages, cuts them into tokens and reads the calls out of the
answer itself.
"""
import argparse
import base64
import io
import json
import random
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from PIL import Image

from example import Case, Conversation
from render import TINY, Renderer, shown
from skills import SKILLS

# row: (skill, tokens of the conversation's text, most turns before the question, bar in percent)
ROWS = {
    "needle, 1K": ("needle", 1024, 0, 99),
    "needle, 8K": ("needle", 8192, 0, 98),
    "needle, 32K": ("needle", 32768, 0, 95),
    "needle, 64K": ("needle", 65536, 0, 90),
    "several needles": ("several", 2048, 3, 97),
    "last value wins": ("restated", 2048, 3, 97),
    "sums": ("arithmetic", 512, 3, 95),
    "lists and letters": ("strings", 512, 3, 95),
    "tools": ("tools", 1024, 2, 97),
    "facts told earlier": ("facts", 1024, 12, 95),
    "system rules": ("rules", 512, 3, 95),
    "pictures": ("look", 512, 2, 95),
    "repeat": ("repeat", 512, 1, 95),
    "small talk": ("talk", 512, 3, 95),
}
MODE_BAR = 99
MOST_TOKENS = 220
LONG = 20000  # cases beyond are few
THINKING_SHARE = 0.4


def make_case(rng, skill, length, turns, count):
    """A held-out conversation cut before one of the assistant messages of its last turn."""
    thinking = rng.random() < THINKING_SHARE
    session = SKILLS[skill](rng, "held-out", length, count, thinking)
    messages = [{"role": "system", "content": session.system}] if session.system else []
    made = Conversation(skill, messages, thinking, preserve=False, tools=session.tools)
    for _ in range(rng.randint(0, turns) + 1):
        turn = session.turn()
        before = len(made.messages)
        made.messages += turn.messages
        made.images += turn.images
    spoken = [i for i, message in enumerate(turn.messages) if message["role"] == "assistant"]
    which = rng.randrange(len(spoken))
    wanted = turn.messages[spoken[which]]
    del made.messages[before + spoken[which]:]
    expected = wanted["content"] + "".join(json.dumps(call) for call in wanted.get("tool_calls", ()))
    return Case(skill, made, expected, turn.judges[which])


class Local:
    """The torch model."""

    def __init__(self, directory, renderer):
        from generate import load
        self.model, self.renderer = load(directory), renderer

    def text(self, case):
        ids, images = self.renderer.prompt(case.conversation)
        made = list(self.model.greedy(ids, images, MOST_TOKENS))
        if self.renderer.im_end in made:
            made = made[:made.index(self.renderer.im_end)]
        return self.renderer.decode(made)


class Server:
    """A running server."""

    def __init__(self, url):
        self.url = url.rstrip("/")

    def text(self, case):
        """The answer as the model wrote it, put together again from the parts of the reply."""
        made = case.conversation
        message = self.ask({
            "messages": openai_messages(made), "temperature": 0, "max_tokens": MOST_TOKENS,
            "chat_template_kwargs": {"enable_thinking": made.thinking, "preserve_thinking": made.preserve},
            **({"tools": made.tools} if made.tools else {})})
        text = (message["content"] or "") + "".join(map(call_text, message.get("tool_calls", ())))
        reasoning = message.get("reasoning_content")
        return f"{reasoning}\n</think>\n\n{text}" if reasoning else text

    def ask(self, body):
        request = urllib.request.Request(self.url + "/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as reply:
                return json.load(reply)["choices"][0]["message"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{self.url}: {error.code} {error.read().decode()}") from error


def openai_messages(conversation):
    """The messages in the form of the API: calls with ids and arguments as JSON text, pictures as data URIs."""
    images = iter(conversation.images)
    messages, open_calls, count = [], [], 0
    for message in shown(conversation.messages, conversation.thinking):
        message = dict(message)
        if message.get("tool_calls"):
            open_calls = [f"call_{count + i}" for i in range(len(message["tool_calls"]))]
            count += len(open_calls)
            message["tool_calls"] = [
                {"id": id, "type": "function",
                 "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}
                for id, call in zip(open_calls, message["tool_calls"])]
        elif message["role"] == "tool":
            message["tool_call_id"] = open_calls.pop(0)
        if not isinstance(message["content"], str):
            message["content"] = [part if part["type"] != "image" else
                                  {"type": "image_url", "image_url": {"url": data_uri(next(images))}}
                                  for part in message["content"]]
        messages.append(message)
    return messages


def data_uri(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def call_text(call):
    arguments = json.loads(call["function"]["arguments"])
    parameters = "".join(f"<parameter={k}>\n{v if isinstance(v, str) else json.dumps(v)}\n</parameter>\n"
                         for k, v in arguments.items())
    return f"<tool_call>\n<function={call['function']['name']}>\n{parameters}</function>\n</tool_call>"


def run_row(backend, cases, parallel):
    """What became of each case. Deterministic, if the backend is."""
    def one(case):
        start = time.time()
        text = backend.text(case)
        asked = [m["content"] for m in case.conversation.messages if m["role"] != "assistant"][-1]
        return dict(right=case.check(text), well_formed=case.answer(text) is not None, asked=asked,
                    expected=case.expected, text=text, thinking=case.conversation.thinking,
                    seconds=round(time.time() - start, 3))
    with ThreadPoolExecutor(parallel) as pool:
        return list(pool.map(one, cases))


def percent(results, key):
    return 100 * sum(result[key] for result in results) / len(results)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--model", default=TINY, help="model directory")
    ap.add_argument("--url", help="address of a running server")
    ap.add_argument("--cases", type=int, default=100, help="cases per row")
    ap.add_argument("--long-cases", type=int, default=20, help=f"cases of a row beyond {LONG} tokens")
    ap.add_argument("--rows", default="", help="only rows whose name contains one of these, comma-separated")
    ap.add_argument("--seed", type=int, default=1000)
    ap.add_argument("--parallel", type=int, default=1, help="requests at a time")
    ap.add_argument("--json", help="file for all results")
    args = ap.parse_args()

    renderer = Renderer(args.model)
    backend = Server(args.url) if args.url else Local(args.model, renderer)
    everything = {}
    print("| skill | right % | bar % | cases |\n|---|---|---|---|")
    for row, (skill, length, turns, bar) in ROWS.items():
        count = args.long_cases if length > LONG else args.cases
        if count == 0 or not any(part in row for part in args.rows.split(",")):
            continue
        rng = random.Random(f"{args.seed} {row}")
        cases = [make_case(rng, skill, length, turns, renderer.count) for _ in range(count)]
        results = everything[row] = run_row(backend, cases, args.parallel)
        print(f"| {row} | {percent(results, 'right'):.1f} | {bar} | {count} |", flush=True)
    every = [result for results in everything.values() for result in results]
    print(f"| thinking on or off, well-formed | {percent(every, 'well_formed'):.1f} | {MODE_BAR} | {len(every)} |")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(everything, f, indent=1)


if __name__ == "__main__":
    main()
