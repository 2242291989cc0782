"""The vocabulary of the generated data, and the split of names and values into training and held-out ones.

A word belongs to the held-out split by its hash, so that no list has to be kept; closed lists
(colours, animals, real names: what the model has to know, not to copy) are in both.
"""
import zlib

COLOURS = "red blue green yellow orange purple black white brown grey pink".split()
ANIMALS = "cat dog horse cow sheep goat duck hen fox wolf bear bee fish frog owl mouse".split()
FOODS = "bread soup rice cake cheese honey apple plum pear bean egg fish tea milk".split()
CITIES = "Paris Rome Oslo Lima Cairo Berlin Madrid Dublin Vienna Tokyo Delhi Athens Prague Boston".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
JOBS = "baker farmer teacher doctor driver painter sailor miller singer writer nurse cook".split()
THINGS = "car house boat door coat hat cup lamp bag book chair table bike box key ball".split()
PLACES = "market bridge river harbour garden forest mill tower station school church inn".split()
# Short words that the model learns to spell.
SPELLED = sorted(set("cat dog cow fox owl bee hen hat cup bag box key car sun map pen ice oil red tea egg "
                     "bear wolf duck goat fish frog boat door coat lamp book bike ball rice cake milk tree moon "
                     "star rain snow wind fire gold ship rope bell road "
                     "horse sheep mouse bread apple honey house chair table river stone green black white plant "
                     "water train paper night light".split()))

REAL_NAMES = ("Anna Ben Clara David Emma Felix Grace Henry Ida Jack Kate Leo Mia Noah Olga Paul Rosa Sam Tom Vera "
              "Adam Bella Carl Dora Eric Flora Georg Hanna Ivan Julia Karl Lena Max Nina Oscar Petra Ruth Simon Tina "
              "Viktor Alice Bruno Cora Emil Frida Hugo Iris Jonas Lily Marco").split()
FIRST = ("Mar Tor Bel Kor Lin Dan Fer Gal Hol Jan Kel Mel Nor Pel Sel Tam Ver Wil Zan Bran Cor Del Fin Gor Har Lor "
         "Mon Ral").split()
MIDDLE = ["", "", "a", "e", "i", "o"]
LAST = "low din ton ric win dale vik sen ber mond ley na ro ta lo rick mer den".split()
ADJECTIVES = "old new north south east west red blue green white black small tall first second last".split()
SPOTS = ("tower door gate room garden bridge mill harbour store cellar office station school ship boat hall "
         "house car safe shed").split()


def held_out(word):
    return zlib.crc32(word.encode()) % 8 == 0


class Words:
    """Draws from one split. Everything random goes through rng."""

    def __init__(self, rng, split):
        self.rng = rng
        self.held = split != "train"

    def pick(self, words):
        return words[int(self.rng.random() * len(words))]

    def chance(self, p):
        return self.rng.random() < p

    def number(self, low, high):
        return low + int(self.rng.random() * (high - low + 1))

    def ours(self, word):
        return held_out(word) == self.held

    def draw(self, make):
        """A value of make() that belongs to this split."""
        while True:
            value = make()
            if self.ours(str(value)):
                return value

    def phrase(self, phrases, rare=()):
        """A phrasing: training ones, and in the held-out split as often one of `rare`."""
        return self.pick(rare) if self.held and rare and self.chance(0.5) else self.pick(phrases)

    def person(self):
        """Real names are in both splits: most are one token, which a model that never met it cannot say."""
        return self.pick(REAL_NAMES) if self.chance(0.2) else self.made_up()

    def made_up(self):
        return self.draw(lambda: self.pick(FIRST) + self.pick(MIDDLE) + self.pick(LAST))

    def spot(self):
        return self.draw(lambda: f"the {self.pick(ADJECTIVES)} {self.pick(SPOTS)}")

    def digits(self, low, high):
        return "".join(str(self.number(0, 9)) for _ in range(self.number(low, high)))

    def letters(self, count):
        return "".join(self.pick("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(count))

    def code(self):
        """Four to six digits, letters and digits, or two words."""
        return self.draw(self.any_code)

    def any_code(self):
        kind = self.rng.random()
        if kind < 0.55:
            return self.digits(4, 6)
        if kind < 0.7:
            return f"{self.letters(1)}{self.digits(1, 2)}-{self.digits(2, 4)}"
        if kind < 0.82:
            return f"{self.letters(2)}{self.digits(2, 4)}"
        return f"{self.pick(COLOURS)} {self.pick(SPELLED)}"
