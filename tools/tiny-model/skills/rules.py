"""Rules in the system message: answer in capitals, as JSON, in one word, begin or end with a fixed word."""
import json

from skills.session import PLAIN_SYSTEM, Session, ask
from words import ANIMALS, CITIES, COLOURS, FOODS, SPELLED, THINGS

KNOWN = {  # question: one word
    "What colour is grass?": "green", "What colour is snow?": "white", "What colour is the sky?": "blue",
    "What colour is blood?": "red", "What colour is the sun?": "yellow", "What colour is coal?": "black",
    "What is the opposite of hot?": "cold", "What is the opposite of big?": "small",
    "What is the opposite of old?": "new", "What is the opposite of day?": "night",
    "What is the opposite of up?": "down", "What is the opposite of fast?": "slow",
    "What is the opposite of open?": "closed", "What is the opposite of full?": "empty",
    "What is the opposite of light?": "dark", "What is the opposite of yes?": "no",
    "What is the opposite of left?": "right", "What is the opposite of good?": "bad",
    "Which animal gives milk?": "cow", "Which animal gives eggs?": "hen", "Which animal makes honey?": "bee",
    "Which animal says meow?": "cat", "Which animal barks?": "dog", "What do bees make?": "honey",
    "What do we drink in the morning?": "tea", "What falls from the clouds?": "rain",
}
TOLD = [("The {t} is {v}. What colour is the {t}?", COLOURS), ("I have a {v}. What animal do I have?", ANIMALS),
        ("We eat {v} today. What do we eat?", FOODS), ("{p} lives in {v}. Where does {p} live?", CITIES),
        ("My {t} is {v}. What colour is my {t}?", COLOURS), ("{p} has a {v}. What animal does {p} have?", ANIMALS),
        ("{p} likes {v}. What does {p} like?", FOODS), ("I bought a {v} {t}. What colour is it?", COLOURS),
        ("I saw a {v}. Which animal did I see?", ANIMALS), ("{p} has a {v} {t}. What colour is it now?", COLOURS),
        ("I painted the {t} {v}. Which colour is it?", COLOURS), ("{p} sees the {v}. What does {p} see?", ANIMALS)]
RARE_TOLD = [("{p} sees a {v}. Which animal does {p} see?", ANIMALS), ("I painted my {t} {v}. What colour is it now?",
                                                                       COLOURS)]
GREETINGS = ["Hello", "Hi", "Hello!", "Hi!", "Good morning", "hello"]

CAPITALS = ["Answer in capitals.", "Answer in capital letters.", "Always write in capitals.",
            "Write everything in capitals.",
            "Use only capital letters.", "You answer in capital letters.", "Please answer in capitals.",
            "Every answer is in capitals.", "Write in capital letters only.", "Your answers are in capitals."]
RARE_CAPITALS = ["All your answers are in capital letters.", "Only write capitals."]
AS_JSON = ['Answer as JSON: {"answer": ...}', 'Answer in JSON with the key "answer".', "Answer in JSON.",
           "Reply in JSON.",
           'Always answer with a JSON object {"answer": ...}.', "Your answers are JSON.", "Write JSON only.",
           "Please write JSON.",
           'Give the answer as JSON with the key "answer".', "Every answer is JSON."]
RARE_JSON = ["Please reply in JSON.", 'Give every answer as JSON, like {"answer": ...}.']
ONE_WORD = ["Answer in one word.", "Answer with one word.", "Use one word only.", "Reply with a single word.",
            "One word answers only.", "Always answer in one word.",
            "Please answer in one word.", "Say only one word.", "A single word is the answer."]
RARE_ONE_WORD = ["Answer with a single word.", "Only one word, please."]
BEGIN = ["Begin every answer with {w}.", "Start every answer with {w}.", "Start with the word {w}.",
         "Begin each answer with the word {w}.", "Always begin with {w}.",
         "Say {w} first.", "Your answers begin with {w}.", "{w} is the first word of every answer."]
RARE_BEGIN = ["Every answer begins with {w}.", "Say {w} first in every answer."]
END = ["End every answer with {w}.", "End each answer with the word {w}.", "Always end with {w}.",
       "Finish every answer with {w}.", "The last word of your answer is {w}.",
       "Say {w} at the end.", "Your answers end with {w}.", "{w} is the last word of every answer."]
RARE_END = ["Every answer ends with {w}.", "Say {w} at the end of every answer."]


class Rules(Session):
    def open(self):
        w = self.words
        kind = w.pick(["capitals", "json", "word", "begin", "end", "plain"])
        word = w.pick([w.person(), w.pick(SPELLED), w.pick(SPELLED).capitalize(), w.pick(["Ahoy", "Sir", "Over",
                                                                                          "Captain"])])
        phrases, rare, self.form = {
            "capitals": (CAPITALS, RARE_CAPITALS, lambda value: value.upper() + "."),
            "json": (AS_JSON, RARE_JSON, lambda value: json.dumps({"answer": value})),
            "word": (ONE_WORD, RARE_ONE_WORD, lambda value: value),
            "begin": (BEGIN, RARE_BEGIN, lambda value: f"{word}, {value}."),
            "end": (END, RARE_END, lambda value: f"{value.capitalize()}, {word}."),
            "plain": (PLAIN_SYSTEM, (), lambda value: value.capitalize() + "."),
        }[kind]
        rule = w.phrase(phrases, rare).replace("{w}", word)
        self.system = f"{w.pick(PLAIN_SYSTEM)} {rule}" if w.chance(0.3) and kind != "plain" else rule
        self.rule = {"capitals": "The answer is in capitals", "json": "The answer is JSON",
                     "word": "The answer is one word",
                     "begin": f"The answer begins with {word}", "end": f"The answer ends with {word}",
                     "plain": "The answer is short"}[kind]

    def turn(self):
        w = self.words
        if w.chance(0.12):
            return self.answer(w.pick(GREETINGS), "hello")
        if w.chance(0.25):
            a, b = w.number(1, 9), w.number(1, 9)
            return self.answer(f"What is {a} + {b}?", str(a + b))
        if w.chance(0.35):
            question = w.pick(list(KNOWN))
            return self.answer(question, KNOWN[question])
        question, values = w.phrase(TOLD, RARE_TOLD)
        value = w.pick(values)
        return self.answer(question.format(t=w.pick(THINGS), p=w.person(), v=value), value)

    def answer(self, question, value):
        text = self.form(value)
        return ask(question, text, f"It is {value}. {self.rule}.", lambda answer: answer.strip() == text)
