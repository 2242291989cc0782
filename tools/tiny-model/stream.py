"""Endless streams of training examples, and held-out cases, from the skills.

    for example in examples(seed=1, length=512): ...

The same seed gives the same examples. An example has at most `length` tokens and, where the skill
allows it, nearly as many: a conversation gets turns until the next would not fit.
"""
import random

import numpy as np

from example import Conversation
from pictures import model_size
from render import TINY, Renderer
from skills import SKILLS, shares
from skills.session import PLAIN_SYSTEM

TURN_TOKENS = 5       # <|im_start|>, role, newline; <|im_end|>, newline
BLOCK_TOKENS = 4      # <think> and its newlines
THINKING_SHARE = 0.4
PLAIN_SYSTEM_SHARE = 0.15  # of the conversations whose skill has no system message of its own


def examples(seed, length, mix=None, model_dir=TINY):
    """Examples of at most `length` tokens. mix: shares by skill name, default by length."""
    renderer = Renderer(model_dir)
    for conversation in conversations(seed, length, mix, renderer.count):
        example = renderer.example(conversation)
        if len(example.ids) <= length:
            yield example


def conversations(seed, length, mix, count, split="train"):
    """Conversations of about `length` tokens; count(text) -> tokens. split: "train" or "held-out"."""
    rng = random.Random(seed)
    mix = mix or shares(length)
    names, weights = list(mix), list(mix.values())
    while True:
        name = rng.choices(names, weights)[0]
        yield conversation(rng, name, length, count, split)


def conversation(rng, name, length, count, split):
    """One conversation, filled with turns."""
    thinking = rng.random() < THINKING_SHARE
    session = SKILLS[name](rng, split, length, count, thinking)
    system = session.system or (rng.choice(PLAIN_SYSTEM) if rng.random() < PLAIN_SYSTEM_SHARE else None)
    messages = [{"role": "system", "content": system}] if system else []
    preserve = rng.random() < (0.75 if thinking else 0.5)
    made = Conversation(name, messages, thinking, preserve, session.tools)
    used = session.fixed_tokens + message_tokens(messages, made, count)
    if not made.preserve:
        used += BLOCK_TOKENS + 30 * thinking  # of the last turn
    while True:
        turn = session.turn()
        cost = message_tokens(turn.messages, made, count)
        cost += sum(np.prod(model_size(*image.shape[:2])) // 1024 + 2 for image in turn.images)
        if made.messages[-1:] and made.messages[-1]["role"] == "assistant" and used + cost > length:
            return made
        made.messages += turn.messages
        made.images += turn.images
        used += cost
        if session.finished:
            return made


def message_tokens(messages, made, count):
    """About how many tokens messages become in the conversation `made`."""
    total = 0
    for message in messages:
        content = message.get("content") or ""
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        total += TURN_TOKENS + sum(map(count, parts))
        if message["role"] == "assistant" and made.preserve:
            total += BLOCK_TOKENS + (count(message["reasoning_content"]) if made.thinking else 0)
        if message["role"] == "tool":
            total += 4
        for call in message.get("tool_calls", ()):
            parameters = "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in call["arguments"].items())
            total += 3 + count(f"\n<function={call['name']}>\n{parameters}</function>\n")
    return total
