"""Questions about pictures: what, which colour, where, how many; and two pictures compared.

A picture gets few questions, and the one that tells everything comes last: an answer must not be
readable from an earlier one.
"""
from example import Turn
from pictures import COLOURS, SHAPES, draw_scene, draw_size, paint
from skills.session import Session, same

DESCRIBE = ["What do you see?", "Describe the picture.", "What is in the picture?", "What does the picture show?",
            "What is in this image?", "Describe this image.", "what is this", "What is this?"]
RARE_DESCRIBE = ["Tell me what you see.", "What can you see here?"]
COLOUR = ["What colour is the {s}?", "Which colour does the {s} have?", "Tell me the colour of the {s}.",
          "The {s}: what colour?", "what colour is the {s}", "Say the colour of the {s}.", "What colour has the {s}?"]
RARE_COLOUR = ["What is the colour of the {s}?"]
SHAPE = ["Which shape is {c}?", "What shape is {c}?", "What is the {c} shape?", "Which thing is {c}?", "What is {c}?",
         "What is {c} here?", "Which shape in the picture is {c}?", "What is the {c} thing in the picture?"]
RARE_SHAPE = ["What is {c} in the picture?"]
WHERE = ["Where is the {x}?", "Where do you see the {x}?", "At which place is the {x}?", "where is the {x}",
         "Say where the {x} is.", "Where in the picture is the {x}?"]
RARE_WHERE = ["Tell me where the {x} is."]
AT = ["What is {p}?", "What do you see {p}?", "Which shape is {p}?", "Tell me what is {p}.",
      "What can be seen {p}?", "What is in the picture {p}?"]
RARE_AT = ["What can you see {p}?"]
HOW_MANY = ["How many shapes are there?", "How many shapes do you see?", "Count the shapes.",
            "How many things are in the picture?"]
RARE_HOW_MANY = ["How many shapes does the picture have?"]
IS_THERE = ["Is there a {x}?", "Do you see a {x}?", "Is a {x} in the picture?", "Can you see a {x}?"]
COMPARE = ["Compare the two pictures.", "What do the two pictures show?", "What is the difference?",
           "Describe both pictures.",
           "How do the pictures differ?"]
RARE_COMPARE = ["What is in the two pictures?"]
SAME = ["Are the two pictures the same?", "Do both pictures show the same?", "Is it the same thing in both pictures?"]
ORDINALS = ["first", "second"]
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight"]


def listed(scene, places=True):
    parts = [f"a{'n' if str(item)[0] == 'o' else ''} {item}{' ' + item.place if places else ''}" for item in scene]
    return ", ".join(parts[:-1]) + (" and " if parts[1:] else "") + parts[-1]


def sentence(text):
    return text[0].upper() + text[1:] + "."


def shapes(count):
    return f"{NUMBERS[count]} shape{'s' if count != 1 else ''}"


class Look(Session):
    def open(self):
        self.scene, self.queue = None, []

    def turn(self):
        w = self.words
        if self.queue:
            return self.about(*self.queue.pop(0))
        if w.chance(0.3) and self.length >= 200:
            return self.two_pictures()
        return self.new_picture()

    def picture(self, most=4):
        """A scene and its picture; some, and all held-out ones, are not of a size that the model takes as it is."""
        w = self.words
        odd = w.held or w.chance(0.6)
        height, width = draw_size(w, 1 if odd else 32, 48 if self.length > 160 else 12)
        scene = draw_scene(w, height, width, most)
        return scene, paint(w, scene, height, width)

    def new_picture(self):
        self.scene, image = self.picture()
        w = self.words
        self.untold = list(self.scene)
        questions = [self.question() for _ in range(1 if self.thinking else w.pick([0, 0, 1, 2, 3]))]
        questions = [q for q in questions if q]
        if not questions or w.chance(0.4):
            questions.append(self.describe())
        self.queue = questions[1:]
        return self.about(*questions[0], images=[image])

    def about(self, question, answer, images=()):
        """A turn: the pictures, then the question. Reasoning describes what is there."""
        content = [{"type": "image"} for _ in images] + [{"type": "text", "text": question}]
        seen = sentence("I see " + listed(self.scene))
        return Turn([{"role": "user", "content": content if images else question},
                     {"role": "assistant", "content": answer, "reasoning_content": seen}],
                    [same(answer)], list(images))

    def question(self):
        """A question and its answer about shapes that no earlier one told of; None if there is none."""
        return self.words.pick([self.colour, self.colour, self.shape, self.shape, self.where, self.where, self.at,
                                self.at, self.how_many, self.is_there])()

    def describe(self):
        return self.words.phrase(DESCRIBE, RARE_DESCRIBE), sentence(listed(self.scene))

    def one(self, field=None):
        """An untold item, from now on told; its shape or colour (field) is not that of another one."""
        values = [getattr(item, field) for item in self.scene] if field else []
        items = [item for item in self.untold if not field or values.count(getattr(item, field)) == 1]
        if not items:
            return None
        item = self.words.pick(items)
        self.untold.remove(item)
        return item

    def colour(self):
        item = self.one("shape")
        return item and (self.words.phrase(COLOUR, RARE_COLOUR).format(s=item.shape),
                         f"The {item.shape} is {item.colour}.")

    def shape(self):
        item = self.one("colour")
        return item and (self.words.phrase(SHAPE, RARE_SHAPE).format(c=item.colour),
                         f"The {item.shape} is {item.colour}.")

    def where(self):
        w = self.words
        by_shape = w.chance(0.5)
        item = self.one("shape") if by_shape else self.one()
        name = item and (item.shape if by_shape else item)
        return item and (w.phrase(WHERE, RARE_WHERE).format(x=name), f"The {name} is {item.place}.")

    def at(self):
        item = self.one()
        return item and (self.words.phrase(AT, RARE_AT).format(p=item.place), sentence(listed([item])))

    def how_many(self):
        return self.words.phrase(HOW_MANY, RARE_HOW_MANY), sentence(shapes(len(self.scene)))

    def is_there(self):
        w = self.words
        if w.chance(0.5):
            item = self.one()
            return item and (w.pick(IS_THERE).format(x=item), f"Yes, there is a {item} {item.place}.")
        name = f"{w.pick(list(COLOURS))} {w.pick(SHAPES)}"
        if name in map(str, self.scene):
            return None
        return w.pick(IS_THERE).format(x=name), f"No, there is no {name}."

    def two_pictures(self):
        """Two new pictures and a question about both; no later question refers to them."""
        w = self.words
        scenes, images = zip(*(self.picture(most=2) for _ in range(2)))
        if w.chance(0.3):
            scenes = (scenes[0], scenes[0])
            images = (images[0], paint(w, scenes[0], *images[0].shape[:2]))
        told = [f"The {which} picture shows {listed(scene, False)}." for which, scene in zip(ORDINALS, scenes)]
        equal = sorted(map(str, scenes[0])) == sorted(map(str, scenes[1]))
        kind = w.rng.random()
        if kind < 0.35:
            question, answer = w.phrase(COMPARE, RARE_COMPARE), " ".join(told)
        elif kind < 0.6:
            question, answer = w.pick(SAME), ("Yes, both pictures show " + listed(scenes[0], False) + "." if equal
                                              else "No. " + " ".join(told))
        elif kind < 0.8 or len(scenes[0]) == len(scenes[1]):
            which = w.number(0, 1)
            question, answer = f"What is in the {ORDINALS[which]} picture?", told[which]
        else:
            which = int(len(scenes[1]) > len(scenes[0]))
            question, answer = "Which picture has more shapes?", f"The {ORDINALS[which]} picture has more shapes."
        content = [{"type": "image"}, {"type": "image"}, {"type": "text", "text": question}]
        return Turn([{"role": "user", "content": content},
                     {"role": "assistant", "content": answer, "reasoning_content": " ".join(told)}],
                    [same(answer)], list(images))
