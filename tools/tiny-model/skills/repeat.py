"""Saying again what was said: names, codes, lists and sentences, copied exactly."""
from filler import sentence
from skills.session import Session, ask
from words import SPELLED

REPEAT = ["Repeat: {x}", "Repeat after me: {x}", "Say this again: {x}", "Write this again: {x}", "Say: {x}",
          "Copy this: {x}",
          "Please repeat: {x}", "Write: {x}", "repeat: {x}", "Please write: {x}", "Please copy: {x}", "Now say: {x}",
          "Say exactly: {x}", "Echo: {x}", "Please write this: {x}"]
RARE = ["Repeat this: {x}", "Please say: {x}"]


class Repeat(Session):
    def turn(self):
        w = self.words
        text = w.pick([self.names, self.names, self.codes, self.mixture, self.sentences])()
        return ask(w.phrase(REPEAT, RARE).format(x=text), text, "I say it again.",
                   lambda answer: answer.strip() == text)

    def names(self):
        return ", ".join(self.words.person() for _ in range(self.words.number(1, 8)))

    def codes(self):
        return ", ".join(self.words.code() for _ in range(self.words.number(1, 5)))

    def mixture(self):
        w = self.words
        return " ".join(w.pick([w.person, w.code, lambda: w.pick(SPELLED)])() for _ in range(w.number(2, 10)))

    def sentences(self):
        return " ".join(sentence(self.rng) for _ in range(self.words.number(1, 2)))
