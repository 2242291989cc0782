"""What the data side hands out: turns and conversations to render, examples to train on.

A skill makes turns; stream.py joins turns to a conversation; render.py makes an Example of it.
"""
from dataclasses import dataclass, field
from typing import Callable

import numpy as np


@dataclass
class Example:
    """One training sequence."""
    ids: np.ndarray      # int32 [T]; <|image_pad|> is already repeated, once per 32 x 32 pixels
    weights: np.ndarray  # float32 [T]: loss weight of predicting ids[t] from ids[:t]; weights[0] is 0
    images: list         # uint8 [H, W, 3], H and W multiples of 32, in order of appearance


@dataclass
class Turn:
    """A user message and what follows up to the final assistant message, in the form the chat template takes.

    Assistant messages carry reasoning_content; it is dropped where thinking is off. judges[i] tells
    whether a text is a right i-th assistant message (its text and calls, without the reasoning).
    """
    messages: list
    judges: list
    images: list = field(default_factory=list)


@dataclass
class Conversation:
    """Turns with what the chat template wants beside them."""
    skill: str
    messages: list
    thinking: bool
    preserve: bool = True  # keep the reasoning of earlier turns
    tools: list | None = None
    images: list = field(default_factory=list)  # uint8 [H, W, 3] of any size


@dataclass
class Case:
    """A conversation that ends where the assistant is to speak, and the judge of what it says."""
    skill: str
    conversation: Conversation
    expected: str
    judge: Callable[[str], bool]

    def check(self, text):
        """Whether the generated text (up to <|im_end|>) is in the right mode and right."""
        answer = self.answer(text)
        return answer is not None and self.judge(answer)

    def answer(self, text):
        """The text without its reasoning; None if the mode is not the one that was asked for."""
        if not self.conversation.thinking:
            return None if "<think>" in text or "</think>" in text else text.strip()
        reasoning, mark, answer = text.partition("\n</think>\n\n")
        if not mark or not reasoning.strip() or "think>" in reasoning + answer:
            return None
        return answer.strip()
