"""Conversations to token ids and loss weights.

The chat template is evaluated as transformers does it. Control tokens come from the template only:
a message that contains one is refused. Text is cut with the family's piece pattern (its ASCII
form; other text goes to the tokenizer library) and each piece is looked up once.
"""
import json
import os
import re

import numpy as np
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from example import Example
from pictures import preprocess

HERE = os.path.dirname(os.path.abspath(__file__))
TINY = os.path.normpath(os.path.join(HERE, "..", "..", "models", "tiny"))

TEXT_WEIGHT = 0.08      # everything the model reads: enough to learn the language
LONG = 3000             # tokens beyond which text counts nothing: few places to compute the loss at
CONTROL = re.compile(r"(<\|[a-z_]+\|>|</?tool_call>|</?tool_response>|</?think>)")
PIECES = re.compile(r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]"
                    r"| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def raise_exception(message):
    raise TemplateError(message)


def chat_template(directory=TINY):
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    env.globals["raise_exception"] = raise_exception
    with open(os.path.join(directory, "chat_template.jinja"), encoding="utf-8") as f:
        return env.from_string(f.read())


TEMPLATE = chat_template()


def contents(messages):
    """Every text that people, tools or the model wrote."""
    for message in messages:
        content = message.get("content") or ""
        yield from [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        yield message.get("reasoning_content") or ""
        for call in message.get("tool_calls", ()):
            yield json.dumps(call)


def shown(messages, thinking):
    """The messages as the template gets them: no reasoning where thinking is off."""
    if thinking:
        return messages
    return [{k: v for k, v in m.items() if k != "reasoning_content"} for m in messages]


def render(conversation, generate=False):
    """The text of a conversation; generate: it ends where the assistant begins to speak."""
    for text in contents(conversation.messages):
        if CONTROL.search(text):
            raise ValueError(f"a control token in a message: {text!r}")
    return TEMPLATE.render(messages=shown(conversation.messages, conversation.thinking), tools=conversation.tools,
                           add_generation_prompt=generate, enable_thinking=conversation.thinking,
                           preserve_thinking=conversation.preserve)


class Renderer:
    """Token ids of conversations, with the tokenizer of a model directory."""

    def __init__(self, directory=TINY):
        self.tokenizer = Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
        token = self.tokenizer.token_to_id
        self.im_start, self.im_end = token("<|im_start|>"), token("<|im_end|>")
        self.image_pad = token("<|image_pad|>")
        self.pieces = {}
        self.assistant = self.text_ids("assistant")
        self.open_thinking = [token("<think>")] + self.text_ids("\n")
        self.no_thinking = [token("<think>")] + self.text_ids("\n\n") + [token("</think>")] + self.text_ids("\n\n")

    def text_ids(self, text):
        """Ids of text; control tokens in it are plain text."""
        if not text.isascii():
            return self.plain(text)
        ids, pieces = [], self.pieces
        for piece in PIECES.findall(text):
            known = pieces.get(piece)
            if known is None:
                known = pieces[piece] = self.plain(piece)
            ids += known
        return ids

    def plain(self, text):
        assert not CONTROL.search(text)
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def count(self, text):
        return len(self.text_ids(text))

    def ids(self, text, images=()):
        """Ids of rendered text: control tokens count, one <|image_pad|> is repeated to the image's size."""
        pads = iter([(image.shape[0] // 32) * (image.shape[1] // 32) for image in images])
        ids = []
        for i, part in enumerate(CONTROL.split(text)):
            if i % 2 == 0:
                ids += self.text_ids(part)
            elif part == "<|image_pad|>":
                ids += [self.image_pad] * next(pads)
            else:
                ids.append(self.tokenizer.token_to_id(part))
        return ids

    def prompt(self, conversation):
        """The ids before the answer, and the pictures as the model takes them."""
        images = [preprocess(image) for image in conversation.images]
        return self.ids(render(conversation, generate=True), images), images

    def decode(self, ids):
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)

    def example(self, conversation):
        images = [preprocess(image) for image in conversation.images]
        ids = self.ids(render(conversation), images)
        text_weight = 0 if len(ids) > LONG else TEXT_WEIGHT
        weights = np.full(len(ids), text_weight, np.float32)
        weights[0] = 0
        start = -1
        for t, token in enumerate(ids):
            if token == self.im_start and ids[t + 1:t + 1 + len(self.assistant)] == self.assistant:
                start = t + 2 + len(self.assistant)  # after the newline
            elif token == self.im_end and start >= 0:
                self.weigh_answer(ids, weights, start, t + 1, conversation.thinking)
                start = -1
        weights[np.array(ids) == self.image_pad] = 0
        return Example(np.array(ids, np.int32), weights, images)

    def weigh_answer(self, ids, weights, start, end, thinking):
        """An answer counts in full, except the block that the generation prompt writes itself."""
        opening = self.open_thinking if thinking else self.no_thinking
        if ids[start:start + len(opening)] == opening:
            weights[start:start + len(opening)] = 0
            start += len(opening)
        elif thinking:
            return  # an earlier turn whose reasoning was dropped: not what the model would say
        weights[start:end] = 1
