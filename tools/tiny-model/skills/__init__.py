"""The skills by name, and how much of each a stream holds by default."""
from skills.arithmetic import Arithmetic
from skills.facts import Facts
from skills.look import Look
from skills.mixed import Mixed
from skills.recall import Needle, Recall, Restated, Several
from skills.repeat import Repeat
from skills.rules import Rules
from skills.strings import Strings
from skills.talk import Talk
from skills.tools import Tools

SKILLS = dict(recall=Recall, needle=Needle, several=Several, restated=Restated, arithmetic=Arithmetic,
              strings=Strings, facts=Facts, talk=Talk, mixed=Mixed, rules=Rules, tools=Tools, look=Look,
              repeat=Repeat)
LEAST_TOKENS = dict(recall=200, needle=160, several=300, restated=300, tools=330, look=100)
SHORT = dict(recall=1.5, needle=0.5, several=1, restated=4, arithmetic=3.5, strings=3.5, facts=4, talk=1.5, mixed=1,
             rules=4, tools=13, look=16, repeat=4)
LONG = dict(recall=8, needle=2, several=2, restated=4, facts=1, mixed=1)


def shares(length):
    mix = SHORT if length <= 2048 else LONG
    return {name: share for name, share in mix.items() if LEAST_TOKENS.get(name, 0) <= length}
