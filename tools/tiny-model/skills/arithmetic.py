"""Small sums: add, subtract and compare. Up to two digits at sight, up to three with digit-wise thinking."""
from skills.session import Session, ask, tells

ADD = ["What is {a} + {b}?", "{a} + {b} = ?", "{a}+{b}", "What is {a} plus {b}?", "Add {a} and {b}.",
       "How much is {a} plus {b}?", "Calculate {a} + {b}.", "what is {a}+{b}", "Please add {a} and {b}.",
       "Tell me the sum of {a} and {b}.", "Tell me what {a} + {b} is.", "What do I get for {a} plus {b}?",
       "What does {a} + {b} make?", "Give me {a} + {b}.", "Tell me what {a} plus {b} is.", "Can you add {a} and {b}?",
       "I need {a} + {b}.", "{a} plus {b}?", "Say what {a} plus {b} makes.", "{a} and {b} together?",
       "What do we get for {a} + {b}?"]
RARE_ADD = ["What do you get for {a} + {b}?", "Tell me {a} plus {b}."]
SUBTRACT = ["What is {a} - {b}?", "{a} - {b} = ?", "{a}-{b}", "What is {a} minus {b}?", "Subtract {b} from {a}.",
            "How much is {a} minus {b}?", "Calculate {a} - {b}.", "what is {a}-{b}", "Take {b} away from {a}.",
            "Tell me what {a} - {b} is.", "What do I get for {a} minus {b}?", "What is left of {a} without {b}?",
            "Give me {a} - {b}.", "Tell me what {a} minus {b} is.", "Can you subtract {b} from {a}?",
            "I need {a} - {b}.", "{a} minus {b}?", "Say what {a} minus {b} makes.", "{a} less {b}?", "What do we get for {a} minus {b}?"]
RARE_SUBTRACT = ["What do you get for {a} - {b}?", "Tell me {a} minus {b}."]
LARGER = ["Which is larger, {a} or {b}?", "Which number is larger: {a} or {b}?", "What is more, {a} or {b}?",
          "Is {a} or {b} larger?", "Compare {a} and {b}: which is larger?",
          "Give me the larger number: {a} or {b}", "Tell me which is larger: {a} or {b}.",
          "The larger of {a} and {b}?", "Find the larger of {a} and {b}.", "Give me the larger of {a} and {b}.",
          "Say the larger of {a} and {b}.", "Tell me the larger number: {a} or {b}?",
          "I want the larger of {a} and {b}.", "Show me the larger of {a} and {b}.", "What is the larger of {a} and {b}?"]
SMALLER = ["Which is smaller, {a} or {b}?", "Which number is smaller: {a} or {b}?", "What is less, {a} or {b}?",
           "Is {a} or {b} smaller?", "Compare {a} and {b}: which is smaller?",
           "Give me the smaller number: {a} or {b}", "Tell me which is smaller: {a} or {b}.",
           "The smaller of {a} and {b}?", "Find the smaller of {a} and {b}.", "Give me the smaller of {a} and {b}.",
           "Say the smaller of {a} and {b}.", "Tell me the smaller number: {a} or {b}?",
           "I want the smaller of {a} and {b}.", "Show me the smaller of {a} and {b}.",
           "What is the smaller of {a} and {b}?"]
RARE_LARGER = ["Tell me the larger of {a} and {b}."]
RARE_SMALLER = ["Tell me the smaller of {a} and {b}."]
PLACES = ["Ones", "Tens", "Hundreds", "Thousands"]


def added(a, b):
    """Digit by digit, from the ones."""
    steps, carry = [], 0
    for place in range(max(len(str(a)), len(str(b)))):
        x, y = a // 10 ** place % 10, b // 10 ** place % 10
        total = x + y + carry
        steps.append(f"{PLACES[place]}: {x} + {y}{f' + {carry}' if carry else ''} = {total}.")
        carry = total // 10
    if carry:
        steps.append(f"{PLACES[len(steps)]}: {carry}.")
    return " ".join(steps)


def subtracted(a, b):
    steps, borrow = [], 0
    for place in range(len(str(a))):
        x, y = a // 10 ** place % 10, b // 10 ** place % 10
        less = x - y - borrow
        minus = f" - {borrow}" if borrow else ""
        borrow = int(less < 0)
        steps.append(f"{PLACES[place]}: {x + 10 * borrow} - {y}{minus} = {less + 10 * borrow}.")
    return " ".join(steps)


class Arithmetic(Session):
    def turn(self):
        return self.words.pick([self.add, self.add, self.subtract, self.subtract, self.compare])()

    def numbers(self):
        """A pair of this split, in either order."""
        w = self.words
        digits = w.pick([1, 2, 2, 3, 3] if self.thinking else [1, 2, 2])

        def draw():
            low = 0 if digits == 1 else 10 ** (digits - 1) // w.pick([1, 1, 10])
            return sorted(w.number(low, 10 ** digits - 1) for _ in range(2))
        pair = w.draw(draw) if digits > 1 else draw()
        return pair if w.chance(0.5) else pair[::-1]

    def add(self):
        a, b = self.numbers()
        return ask(self.words.phrase(ADD, RARE_ADD).format(a=a, b=b), f"{a} + {b} = {a + b}.", added(a, b),
                   lambda text: text.replace("+", "").rstrip(" .").split(" ")[-1] == str(a + b))

    def subtract(self):
        a, b = sorted(self.numbers(), reverse=True)
        return ask(self.words.phrase(SUBTRACT, RARE_SUBTRACT).format(a=a, b=b), f"{a} - {b} = {a - b}.",
                   subtracted(a, b), lambda text: text.rstrip(" .").split(" ")[-1] == str(a - b))

    def compare(self):
        a, b = self.numbers()
        if a == b:
            b += 1
        larger = self.words.chance(0.5)
        phrases = (LARGER, RARE_LARGER) if larger else (SMALLER, RARE_SMALLER)
        best, rest = (max(a, b), min(a, b)) if larger else (min(a, b), max(a, b))
        word = "larger" if larger else "smaller"
        return ask(self.words.phrase(*phrases).format(a=a, b=b), f"{best} is {word}.",
                   f"{best} is {word} than {rest}.", tells(str(best), [str(rest)]))
