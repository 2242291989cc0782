"""Finding facts in a long text: one needle, many needles, needles whose value changes.

A fact names what it is about (attribute and, mostly, entity) and a value; the core of every phrasing is
"the ATTRIBUTE for ENTITY is VALUE". The answer repeats the core, so that the value is looked up right
after the words that precede it in the text. A conversation is a text and questions about it.
"""
from filler import paragraphs, prose
from skills.session import Session, ask, tells

KINDS = "code number password key word".split()
MARKS = ["secret ", "access ", "door ", "ticket ", "badge ", "room ", "safe ", "gate ", "magic ", "locker "]
STATEMENTS = ["The {core}."] * 8 + [
    "Remember that the {core}.", "Note that the {core}.", "Please remember: the {core}.", "By the way, the {core}.",
    "Somebody wrote down that the {core}.", "It was agreed that the {core}.", "In the letter it says that the {core}.",
    "Do not forget that the {core}.", "They told me that the {core}."]
RARE_STATEMENTS = ["Everybody knows that the {core}.", "Write this down: the {core}.", "I was told that the {core}."]
CHANGES = ["The {core}.", "The {now}.", "From today on the {core}.", "It was changed: the {core}.", "The {now}.",
           "Since then the {core}."]
QUESTIONS = ["What is the {key}?"] * 5 + [
    "Tell me the {key}.", "What does the text say about the {key}?", "I need the {key}.", "Do you know the {key}?",
    "Which value does the {key} have?", "Please tell me the {key}.", "what is the {key}", "The {key}?",
    "Can you tell me the {key}?", "Find the {key}.", "Say the {key}.", "Where do I find the {key}? What is it?",
    "I do not know the {key}. Do you?", "Look for the {key}."]
RARE_QUESTIONS = ["Can you find the {key}?", "Look up the {key}.", "I forgot the {key}. What is it?"]
INTRODUCTIONS = ["", "Read this text.", "Here is a text.", "Text:", "Please read this carefully.", "Read the text."]
QUESTION_TOKENS = 40
THINKING_TOKENS = 30
DENSE_TOKENS = 20  # a fact and hardly anything else


class Recall(Session):
    """Many facts in one text."""
    facts_max = 64
    restated = 0.35  # share of texts in which values change

    def open(self):
        w = self.words
        room = self.length - 60
        per_question = QUESTION_TOKENS + THINKING_TOKENS * self.thinking
        questions = min(self.facts_max, int(room * w.pick([0.3, 0.5, 0.6]) / per_question)) or 1
        facts = min(self.number_of_facts(questions), self.facts_max)
        questions = min(questions, 3 * facts)
        text_tokens = room - questions * per_question
        self.values = {}   # key -> its values, the last one holds
        told = []
        for _ in range(max(1, min(facts, text_tokens // DENSE_TOKENS))):
            key = self.new_key()
            self.values[key] = [w.code()]
            told.append((self.rng.random(), self.state(key)))
        if w.chance(self.restated):
            told += self.changes(told, text_tokens)
        self.text = self.hide(told, text_tokens)
        self.queue = []
        self.first = True

    def number_of_facts(self, questions):
        w = self.words
        return w.number(1, 4) if w.chance(0.3) else w.number(1, max(1, questions))

    def new_key(self):
        w = self.words
        while True:
            key = w.pick(KINDS) if w.chance(0.2) else w.draw(lambda: w.pick(MARKS) + w.pick(KINDS))
            if w.chance(0.92):
                key += f" for {w.spot() if w.chance(0.3) else w.person()}"
            if key not in self.values:
                return key

    def state(self, key):
        return self.words.phrase(STATEMENTS, RARE_STATEMENTS).format(core=f"{key} is {self.values[key][-1]}")

    def changes(self, told, text_tokens):
        w = self.words
        added = []
        for place, key in zip([p for p, _ in told], list(self.values)):
            while w.chance(0.4) and (len(told) + len(added)) * DENSE_TOKENS < text_tokens:
                self.values[key].append(w.code())
                place += (1 - place) * self.rng.random()
                value = self.values[key][-1]
                added.append((place, w.pick(CHANGES).format(core=f"{key} is {value}", now=f"{key} is now {value}")))
        return added

    def hide(self, told, tokens):
        """The statements at their relative places in filler."""
        told = sorted(told)
        spare = tokens - sum(self.count(text) for _, text in told)
        text = prose(self.rng, spare, self.count) if spare > 20 else []
        for offset, (place, statement) in enumerate(told):
            text.insert(int(place * (len(text) - offset + 0.999)) + offset, statement)
        return paragraphs(self.rng, text)

    def turn(self):
        w = self.words
        if not self.queue:
            self.queue = list(self.values)
            self.rng.shuffle(self.queue)
        key = self.queue.pop()
        value = self.values[key][-1]
        question = w.phrase(QUESTIONS, RARE_QUESTIONS).format(key=key)
        if self.first:
            introduction = w.pick(INTRODUCTIONS)
            question = f"{introduction}\n\n{self.text}\n\n{question}".strip()
        self.first = False
        others = {v for values in self.values.values() for v in values} - {value}
        return ask(question, f"The {key} is {value}.", f"I look for the {key}. The last value given is {value}.",
                   tells(value, others))


class Needle(Recall):
    """One fact."""
    restated = 0

    def number_of_facts(self, questions):
        return 1


class Several(Recall):
    """Two to eight facts, none of which changes."""
    restated = 0

    def number_of_facts(self, questions):
        return self.words.number(2, 8)


class Restated(Several):
    """A few facts, some of which change."""
    restated = 1
