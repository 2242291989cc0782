"""What every skill derives from: one conversation that makes turns on request."""
import re

from example import Turn
from words import Words


PLAIN_SYSTEM = ["You are a helpful assistant.", "You are Tiny, a small model.", "Be brief.", "Help the user.",
                "Be kind.",
                "Answer in short sentences."]


class Session:
    """A conversation of one skill. length: its tokens; count(text) -> tokens."""
    system = None
    tools = None
    fixed_tokens = 0   # of the system turn beyond its text
    finished = False   # no further turn makes sense

    def __init__(self, rng, split, length, count, thinking):
        self.rng, self.split, self.length, self.count, self.thinking = rng, split, length, count, thinking
        self.words = Words(rng, split)
        self.open()

    def open(self):
        """Prepares what all turns share."""

    def turn(self):
        raise NotImplementedError


def tidy(text):
    """Text for comparison: case, spaces and the last full stop do not count."""
    return re.sub(r"\s+", " ", text).strip().rstrip(".!").lower()


def same(expected):
    return lambda text: tidy(text) == tidy(expected)


def tells(value, others=()):
    """A judge: the value is in the text as a whole, none of the others is."""
    def found(word, text):
        return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE)
    return lambda text: bool(found(value, text)) and not any(found(o, text) for o in others if o != value)


def ask(question, answer, reasoning, judge=None, images=()):
    """A plain turn: a question and its answer."""
    return Turn([{"role": "user", "content": question},
                 {"role": "assistant", "content": answer, "reasoning_content": reasoning}],
                [judge or same(answer)], list(images))
