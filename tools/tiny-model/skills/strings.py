"""Lists and letters: sort, count, reverse, first and last, spell."""
from skills.session import Session, ask
from words import ANIMALS, CITIES, COLOURS, FOODS, SPELLED

SORT_NUMBERS = ["Sort these numbers: {x}", "Sort from small to large: {x}", "Put these numbers in order: {x}",
                "Sort {x}.", "Please sort the numbers {x}.", "Order these numbers: {x}", "Sort this: {x}",
                "Bring these numbers into the right order: {x}", "Put this in order: {x}", "Order this: {x}",
                "Bring {x} into order.", "Bring these into order: {x}", "Put this into order: {x}", "Order {x}.",
                "Sort the list {x}.", "Can you sort this: {x}?", "In order, please: {x}", "Bring into order: {x}"]
SORT_WORDS = ["Sort these words: {x}", "Sort from A to Z: {x}", "Put these words in alphabetical order: {x}",
              "Sort the words {x}.", "Please sort these words: {x}", "Sort this: {x}",
              "Bring these words into the right order: {x}", "Put this in order: {x}", "Order this: {x}",
              "Bring {x} into order.", "Bring these into order: {x}", "Put this into order: {x}", "Order {x}.",
              "Sort the list {x}.", "Can you sort this: {x}?", "In order, please: {x}", "Bring into order: {x}"]
COUNT = ["How many words are in this list: {x}?", "Count the words: {x}", "How many words are here: {x}?",
         "Count these words: {x}", "How many things are in the list {x}?", "Tell me how many words are here: {x}",
         "How many words is this: {x}", "What is the number of words in {x}?", "How many words do you see: {x}?",
         "The number of words here: {x}", "Say how many words this is: {x}", "Give me the number of words: {x}"]
COUNT_LETTERS = ["How many letters are in the word {x}?", "Count the letters of {x}.", "How many letters has {x}?",
                 "How long is the word {x}?"]
REVERSE_LIST = ["Reverse this list: {x}", "Reverse the order: {x}", "Write this list backwards: {x}",
                "Turn this list around: {x}", "Say this from the last to the first: {x}", "Write the last first: {x}",
                "List this backwards: {x}", "Give me the list from the end: {x}", "Say these from the last to the first: {x}",
                "From the last to the first: {x}", "Reverse {x}.", "List these backwards: {x}", "Backwards: {x}",
                "Write these from the last to the first: {x}", "Give me these in reverse: {x}"]
REVERSE_WORD = ["Reverse the word {x}.", "Write {x} backwards.", "Spell {x} backwards.", "What is {x} backwards?",
                "Turn the word {x} around."]
SPELL = ["Spell {x}.", "How do you spell {x}?", "Spell the word {x}.", "Which letters are in {x}?"]
FIRST = ["What is the first word in this list: {x}?", "Which word comes first: {x}?", "First of {x}?",
         "Tell me the first word: {x}"]
LAST = ["What is the last word in this list: {x}?", "Which word comes last: {x}?", "Last of {x}?",
        "Tell me the last word: {x}"]
RARE = {"sort": ["Bring this into order: {x}"], "count": ["Tell me how many words this is: {x}"],
        "reverse": ["List these from the last to the first: {x}"]}
EASY_WORDS = sorted(set(COLOURS + ANIMALS + FOODS))


def spelled(word):
    return "-".join(word)


class Strings(Session):
    def turn(self):
        return self.words.pick([self.sort_numbers, self.sort_numbers, self.sort_words, self.count_words,
                                self.count_letters, self.reverse_list, self.reverse_word, self.spell, self.end])()

    def some_words(self, low, high, words=EASY_WORDS):
        w = self.words
        return w.draw(lambda: ", ".join(self.rng.sample(words, w.number(low, high))))

    def sort_numbers(self):
        w = self.words
        high = w.pick([9, 20, 99, 99, 999] if self.thinking else [9, 20, 99, 99])
        numbers = w.draw(lambda: ", ".join(map(str, self.rng.sample(range(high + 1), w.number(3, 6)))))
        return self.sorted(SORT_NUMBERS, numbers, int)

    def sort_words(self):
        return self.sorted(SORT_WORDS, self.some_words(3, 5), str)

    def sorted(self, phrases, text, key):
        items = text.split(", ")
        order = sorted(items, key=key)
        steps = "Smallest first." if key is int else "Start: " + ", ".join(x[0] + " " + x for x in items) + "."
        return ask(self.words.phrase(phrases, RARE["sort"]).format(x=text), ", ".join(order), steps)

    def count_words(self):
        text = self.some_words(2, 7, EASY_WORDS + CITIES)
        items = text.split(", ")
        steps = ", ".join(f"{i + 1} {x}" for i, x in enumerate(items)) + "."
        return ask(self.words.phrase(COUNT, RARE["count"]).format(x=text), f"{len(items)} words.", steps)

    def count_letters(self):
        word = self.words.pick(SPELLED)
        steps = ", ".join(f"{i + 1} {x}" for i, x in enumerate(word)) + "."
        return ask(self.words.pick(COUNT_LETTERS).format(x=word), f"{spelled(word)}: {len(word)} letters.", steps)

    def reverse_list(self):
        text = self.some_words(2, 5)
        return ask(self.words.phrase(REVERSE_LIST, RARE["reverse"]).format(x=text),
                   ", ".join(reversed(text.split(", "))), "I begin with the last one.")

    def reverse_word(self):
        word = self.words.pick(SPELLED)
        return ask(self.words.pick(REVERSE_WORD).format(x=word), spelled(word[::-1]), f"{word} is {spelled(word)}.")

    def spell(self):
        word = self.words.pick(SPELLED)
        return ask(self.words.pick(SPELL).format(x=word), spelled(word), f"I spell the word {word}.")

    def end(self):
        first = self.words.chance(0.5)
        text = self.some_words(2, 6)
        item = text.split(", ")[0 if first else -1]
        return ask(self.words.pick(FIRST if first else LAST).format(x=text),
                   f"The {'first' if first else 'last'} word is {item}.", f"The list is {text}.")
