"""A conversation that wanders between the skills which need neither a system message nor tools."""
from skills.arithmetic import Arithmetic
from skills.facts import Facts
from skills.session import Session
from skills.strings import Strings
from skills.talk import Talk


class Mixed(Session):
    def open(self):
        made = [kind(self.rng, self.split, self.length, self.count, self.thinking)
                for kind in (Arithmetic, Strings, Talk, Facts)]
        self.sessions = made + made[-1:] * 2

    def turn(self):
        return self.words.pick(self.sessions).turn()
