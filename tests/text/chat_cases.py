"""The frozen chat cases of tests/goldens/chat_cases.json and how a rendered text is compared with them."""
import hashlib
import json
import pathlib

FILE = pathlib.Path(__file__).resolve().parents[1] / "goldens" / "chat_cases.json"
DATA = json.loads(FILE.read_text(encoding="utf-8"))
BEFORE_HEAD = "<|im_start|>system\n"
AFTER_TAIL = ("\n\n", "<|im_end|>")


def cases(template):
    return [case for case in DATA["cases"] if case["template"] == template]


def variables(case):
    return {"messages": case["messages"], **case["options"]}


def fixed_strings(text):
    """Head and tail of the tools turn: what stands before the first tool and after the last."""
    head = text[len(BEFORE_HEAD):text.index("<tools>") + len("<tools>")]
    tail = text[text.index("</tools>") + len("</tools>"):]
    return head, tail[:tail.index("<|im_end|>")]


def expected(case, text):
    """The case's text with the markers replaced by the fixed strings that `text` contains.

    A template of our own has other fixed strings than the published ones; where the hashes are those
    of the published ones, the strings are checked too."""
    want = case["text"]
    if "[[TOOLS_HEAD]]" not in want:
        return want
    head, tail = fixed_strings(text)
    system = want[want.index("[[TOOLS_TAIL]]") + len("[[TOOLS_TAIL]]"):want.index("<|im_end|>")]
    assert tail.endswith(system)
    tail = tail[:len(tail) - len(system)]
    return want.replace("[[TOOLS_HEAD]]", head).replace("[[TOOLS_TAIL]]", tail), (head, tail)


def check(tool, case, published):
    answer = tool.ask("render", variables_json=json.dumps(variables(case)))
    if case.get("raises"):
        assert answer.get("error") == "invalid_argument", answer
        return
    assert "text" in answer, answer
    want = expected(case, answer["text"])
    if isinstance(want, tuple):
        want, strings = want
        if published:
            for name, string in zip(("tools_head", "tools_tail"), strings):
                assert hashlib.sha256(string.encode()).hexdigest() == DATA[name]["sha256"], name
    assert answer["text"] == want
