"""Facts that come up in a conversation: told in one turn, asked for many turns later; the last value holds."""
from skills.session import Session, ask, tells
from words import ANIMALS, CITIES, COLOURS, FOODS, JOBS, MONTHS

# attribute: values (None: a name, a number or a code)
MINE = {"name": None, "age": None, "favourite colour": COLOURS, "favourite animal": ANIMALS, "favourite food": FOODS,
        "city": CITIES, "job": JOBS, "birth month": MONTHS, "lucky number": None, "password": None,
        "sister's name": None, "brother's name": None, "cat's name": None, "dog's name": None, "boss's name": None}
TELL = ["My {a} is {v}.", "My {a} is {v}.", "my {a} is {v}", "Remember that my {a} is {v}.",
        "You should know that my {a} is {v}.",
        "Please remember: my {a} is {v}.", "I want you to know that my {a} is {v}.", "By the way, my {a} is {v}."]
RARE_TELL = ["Keep in mind that my {a} is {v}.", "Let me tell you that my {a} is {v}."]
CHANGE = ["My {a} is now {v}.", "My {a} is {v} now.", "I was wrong: my {a} is {v}.", "From now on my {a} is {v}."]
ASK = ["What is my {a}?", "What is my {a}?", "what is my {a}", "Tell me my {a}.", "Do you remember my {a}?",
       "Do you know my {a}?", "Can you tell me my {a}?", "Say my {a}.", "What was my {a}?", "I do not know my {a}. Do you?", "My {a}?",
       "What is my {a} again?", "I need my {a}.", "What did I say my {a} is?"]
RARE_ASK = ["What was my {a} again?", "I forgot my {a}. What is it?"]
THEIR = {"favourite colour": COLOURS, "favourite food": FOODS, "favourite animal": ANIMALS, "city": CITIES, "job": JOBS,
         "age": None, "room number": None}
THEIR_TELL = ["The {a} of {p} is {v}.", "{p}'s {a} is {v}.", "Remember that the {a} of {p} is {v}.",
              "Note that {p}'s {a} is {v}.", "By the way, the {a} of {p} is {v}.", "the {a} of {p} is {v}"]
RARE_THEIR_TELL = ["Keep in mind that the {a} of {p} is {v}."]
THEIR_ASK = ["What is the {a} of {p}?", "What is {p}'s {a}?", "Tell me the {a} of {p}.", "Do you remember {p}'s {a}?",
             "Do you know the {a} of {p}?", "what is the {a} of {p}"]
RARE_THEIR_ASK = ["What was the {a} of {p} again?"]


class Facts(Session):
    def open(self):
        self.known = {}  # (owner, attribute) -> value; owner "" is the user
        self.people = [self.words.person() for _ in range(self.words.number(1, 4))]

    def turn(self):
        chance = self.rng.random()
        if not self.known or chance < 0.35:
            return self.tell()
        if chance < 0.55:
            return self.unknown() or self.tell()
        if chance < 0.65:
            return self.two() or self.recall()
        return self.recall()

    def value(self, attribute, values):
        w = self.words
        if values:
            return w.pick(values)
        if attribute == "password":
            return w.code()
        if attribute == "age":
            return str(w.number(5, 90))
        if attribute.endswith("number"):
            return w.digits(1, 3)
        return w.person()

    def tell(self):
        w = self.words
        owner = w.pick(self.people) if w.chance(0.4) else ""
        kinds = THEIR if owner else MINE
        attribute = w.pick(list(kinds))
        value = self.value(attribute, kinds[attribute])
        if owner:
            phrase = w.phrase(THEIR_TELL, RARE_THEIR_TELL)
        else:
            phrase = w.pick(CHANGE) if (owner, attribute) in self.known else w.phrase(TELL, RARE_TELL)
        self.known[owner, attribute] = value
        return ask(phrase.format(p=owner, a=attribute, v=value), f"I will remember that {self.core(owner, attribute)}.",
                   "The user tells me a fact.", tells(value))

    def core(self, owner, attribute):
        return f"{self.key(owner, attribute)} is {self.known[owner, attribute]}"

    @staticmethod
    def key(owner, attribute):
        return f"the {attribute} of {owner}" if owner else f"your {attribute}"

    def recall(self):
        w = self.words
        owner, attribute = w.pick(list(self.known))
        phrase = w.phrase(THEIR_ASK, RARE_THEIR_ASK) if owner else w.phrase(ASK, RARE_ASK)
        core = self.core(owner, attribute)
        core = core[0].upper() + core[1:]
        value = self.known[owner, attribute]
        return ask(phrase.format(p=owner, a=attribute), f"{core}.",
                   f"I look for {self.key(owner, attribute)}. It is {value}.",
                   tells(value, [v for v in self.known.values() if v != value and v not in core]))

    def two(self):
        """Two facts in one question."""
        mine = [a for owner, a in self.known if not owner]
        if len(mine) < 2:
            return None
        a, b = self.rng.sample(mine, 2)
        x, y = self.known["", a], self.known["", b]
        return ask(f"What is my {a} and what is my {b}?", f"Your {a} is {x} and your {b} is {y}.",
                   f"I look for your {a}. It is {x}. I look for your {b}. It is {y}.",
                   lambda text: tells(x)(text) and tells(y)(text))

    def unknown(self):
        missing = [a for a in MINE if ("", a) not in self.known]
        if not missing:
            return None
        attribute = self.words.pick(missing)
        return ask(self.words.phrase(ASK[:-1]).format(a=attribute), f"You have not told me your {attribute}.",
                   f"I look for your {attribute}. I do not find it.")
