"""Templates render as Jinja2 with transformers' settings renders them, whatever the strings contain; and
text that spells control tokens never becomes one."""
import json
import random

import jinja2
import jinja2.ext
import jinja2.sandbox
import pytest

import corpus
import real_tokenizer as real
from conftest import ROOT

SEED = 77
ROUNDS = 400
TINY = ROOT / "models" / "tiny"
CONTROL = [text for _, text in real.control_tokens()]


def ids_of(*texts):
    return {600 + CONTROL.index(text) for text in texts}


# What a template may write on its own. The first six make the turns and calls.
TURNS = ids_of("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
OWN = TURNS | ids_of("<think>", "</think>", "<|vision_start|>", "<|image_pad|>", "<|video_pad|>", "<|vision_end|>")


def reference(source):
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    return environment.from_string(source)


def some_text(rng):
    pieces = [corpus.text(rng, rng.randrange(0, 4))]
    for _ in range(rng.randrange(0, 5)):
        pieces.append(rng.choice(CONTROL + ["<think>", "</think>", "<tool_response>", "</tool_response>"]))
        pieces.append(rng.choice(("", "\n", "\n\n", " ", "x", "\u2028", "\x1c", "\ufdd0", "<", "<|im_")))
    rng.shuffle(pieces)
    shape = rng.randrange(6)
    text = "".join(pieces)
    if shape == 0:
        return "<tool_response>" + text + "</tool_response>\n"
    if shape == 1:
        return "<think>\n" + text + "\n</think>\n\n" + corpus.text(rng, 2)
    return text


def some_json(rng, depth=0):
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return rng.choice((None, True, False))
    if kind == 1:
        return rng.randrange(-10 ** 15, 10 ** 18)
    if kind == 2:
        return rng.choice((0.5, 1e20, 1e-7, 3.0, 1e16, -2.25, rng.uniform(-1e5, 1e5), rng.uniform(-1, 1) * 1e-300))
    if kind < 6:
        return some_text(rng)
    if kind == 6:
        return [some_json(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {some_text(rng)[:20]: some_json(rng, depth + 1) for _ in range(rng.randrange(4))}


def some_object(rng):
    return {rng.choice(("city", "days", some_text(rng)[:12])): some_json(rng) for _ in range(rng.randrange(4))}


def some_content(rng):
    kind = rng.randrange(6)
    if kind == 0:
        parts = [{"type": "text", "text": some_text(rng)} for _ in range(rng.randrange(1, 4))]
        parts += [{"type": "image", "image": "x"}, {"type": "video", "video": "y"}][:rng.randrange(3)]
        rng.shuffle(parts)
        return parts
    return some_text(rng)


def conversation(rng):
    messages = []
    if rng.random() < 0.4:
        messages.append({"role": "system", "content": some_text(rng)})
    for _ in range(rng.randrange(1, 5)):
        messages.append({"role": "user", "content": some_content(rng)})
        if rng.random() < 0.7:
            answer = {"role": "assistant", "content": some_content(rng)}
            if rng.random() < 0.4:
                answer["reasoning_content"] = some_text(rng)
            if rng.random() < 0.5:
                calls = [{"name": "f" + some_text(rng)[:5], "arguments": some_object(rng)} for _ in range(rng.randrange(3))]
                answer["tool_calls"] = [rng.choice((call, {"type": "function", "function": call})) for call in calls]
                messages.append(answer)
                answer = None
                for _ in range(rng.randrange(3)):
                    messages.append({"role": "tool", "content": some_text(rng)})
            if answer:
                messages.append(answer)
    variables = {"messages": messages, "add_generation_prompt": rng.random() < 0.7}
    for switch in ("enable_thinking", "preserve_thinking", "add_vision_id"):
        if rng.random() < 0.4:
            variables[switch] = rng.random() < 0.5
    if rng.random() < 0.4:
        variables["tools"] = [{"type": "function", "function": {"name": some_text(rng)[:9], "parameters": some_object(rng)}}
                              for _ in range(rng.randrange(3))]
    return variables


def without_controls(value):
    """The same variables with spellings that can make no token."""
    if isinstance(value, str):
        return value.replace("<", "\u2039")
    if isinstance(value, list):
        return [without_controls(item) for item in value]
    if isinstance(value, dict):
        return {without_controls(key): without_controls(item) for key, item in value.items()}
    return value


def control_ids(answer):
    return [token for token in answer["ids"] if token >= 600]


def render(tool, variables):
    return tool.ask("render", variables_json=json.dumps(variables))


def check(tool, source):
    template = reference(source)
    rng = random.Random(SEED)
    rendered = 0
    for _ in range(ROUNDS):
        variables = conversation(rng)
        answer = render(tool, variables)
        try:
            want = template.render(**variables)
        except jinja2.exceptions.TemplateError as error:
            assert answer.get("error") == "invalid_argument", (variables, answer)
            assert answer["message"].startswith(str(error)[:200]), (variables, answer)
            continue
        assert answer.get("text") == want, variables
        rendered += 1
        harmless = render(tool, without_controls(variables))
        assert set(control_ids(answer)) <= OWN, variables
        # Where `<` is another character, a template no longer sees reasoning or tool results inside
        # texts (and keeps pictures that it dropped with the reasoning); turns and calls stay the same.
        if "ids" in harmless:
            assert [i for i in answer["ids"] if i in TURNS] == [i for i in harmless["ids"] if i in TURNS], variables
    assert rendered > ROUNDS // 2


def test_own_template(start_tool, small_tokenizer):
    check(start_tool(small_tokenizer, TINY), (TINY / "chat_template.jinja").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["qwen3.5", "qwen3.6", "qwen3.8"])
def test_published_template(start_tool, small_tokenizer, published_templates, name):
    directory = published_templates[name]
    check(start_tool(small_tokenizer, directory), (directory / "chat_template.jinja").read_text(encoding="utf-8"))
