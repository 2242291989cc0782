"""Plain prose from a small grammar: the text that facts are hidden in.

About thirty sentence frames with some two dozen words per slot: the number of different sentences is
in the millions, so 64K tokens of it do not repeat. Numbers occur in it, but never after "is", and
no sentence has the form of a fact.
"""
import re

SLOTS = {
    "who": ("the baker|the farmer|the teacher|the doctor|the driver|the painter|the sailor|the miller|the singer"
            "|the writer|the nurse|the cook|an old man|an old woman|a young girl|a small boy|my sister|my brother"
            "|my neighbour|our teacher|a friend|the captain|the guard|a stranger").split("|"),
    "they": ("the children|the farmers|the sailors|the people|the neighbours|two friends|three men|four women"
             "|the workers|my parents|the students|the guests").split("|"),
    "animal": "cat|dog|horse|cow|sheep|goat|duck|hen|fox|wolf|bear|owl|mouse|frog".split("|"),
    "animals": "cats|dogs|horses|cows|sheep|goats|ducks|hens|owls|bees".split("|"),
    "place": ("market|bridge|river|harbour|garden|forest|mill|tower|station|school|church|inn|lake|hill|field|road"
              "|village|valley|island|beach").split("|"),
    "adj": "old|new|small|big|long|quiet|cold|warm|dark|bright|empty|busy|clean|strange|simple|dry".split("|"),
    "time": ("in the morning|in the evening|at night|at noon|in spring|in summer|in autumn|in winter|on Monday"
             "|on Tuesday|on Friday|on Sunday|last year|last week|yesterday|after the rain|before the storm"
             "|every day|in the end|for a while").split("|"),
    "went": "walked to|came from|looked for|worked near|lived near|waited at|talked about|ran to|sat by".split("|"),
    "made": "made|sold|bought|found|lost|carried|painted|cleaned|wanted|kept|brought|saw".split("|"),
    "thing": ("bread|soup|rice|cake|cheese|honey|apples|plums|beans|eggs|fish|tea|milk|salt|wood|stones|books|letters"
              "|flowers|ropes|lamps|boxes|chairs|hats").split("|"),
    "one": "car|house|boat|door|coat|hat|cup|lamp|bag|book|chair|table|bike|box|key|ball|letter|picture".split("|"),
    "why": ("because the rain had stopped|because the wind was strong|because it was late|because it was cold"
            "|because nobody else came|because the road was long|since the work was done|since there was time"
            "|but nobody knew why|but it did not help|and then went home|and said nothing|and was happy"
            "|and the day was good|as people do|as in the old days").split("|"),
    "sky": "rain|snow|wind|fog|sun|storm|ice".split("|"),
    "colour": "red|blue|green|yellow|black|white|brown|grey".split("|"),
    "feel": "happy|sad|tired|hungry|calm|afraid|surprised|late|ready|alone".split("|"),
    "unit": "days|weeks|hours|years|minutes|miles|steps".split("|"),
}
FRAMES = """
{Time} {who} {went} the {adj} {place} {why}.
{Time} {they} {went} the {place}, and {who} {made} {thing}.
{Who} {went} the {place} and {made} {thing} {time}.
{Who} {made} a {colour} {one} {time}, {why}.
{They} {made} {N} boxes of {thing} {time}.
The {adj} {animal} {went} the {place} {time}.
A {colour} {animal} and a {colour} {animal} {went} the {place} {why}.
{Time} there was {sky} over the {place}, and {who} was {feel}.
The {sky} came {time}, and {they} {went} the {adj} {place}.
It took {N} {unit} to get from the {place} to the {place}.
The {place} was {adj}, {why}.
{Who} said that the {place} was {adj} and the {place} was {adj}.
"The {place} looks {adj}," said {who}, "and I am {feel}."
"Did you see the {animal} by the {place}?" asked {who}.
Nobody saw the {adj} {one} that {who} {made} {time}.
{They} were {feel} {why}.
{Who} was {feel}, and {they} {went} the {place}.
In the {place} there were {N} {animals} and {N} {animals}.
{Who} paid {N} coins for the {colour} {one} {time}.
A train with {N} people came from the {place} {time}.
The price of {thing} went up by {N} coins {time}.
{Time} {who} {made} {thing}, {thing} and {thing}.
If there is {sky}, {they} stay near the {place}.
{Who} had {N} {animals}, {why}.
The {one} of {who} was {colour} and {adj}.
{Time} the {animal} slept under the {one}, {why}.
Some say that {who} {went} the {place} {N} times.
The road to the {place} was {adj} {time}, {why}.
House {N} near the {place} has a {colour} door.
{They} told stories about {who} and the {colour} {animal}.
"""


def compile_frame(frame):
    """Alternating literal texts and slot names."""
    return re.split(r"\{(\w+)\}", frame)


COMPILED = [compile_frame(frame) for frame in FRAMES.strip().split("\n")]


def sentence(rng):
    random = rng.random
    frame = COMPILED[int(random() * len(COMPILED))]
    parts = []
    for i, part in enumerate(frame):
        if i % 2 == 0:
            parts.append(part)
        elif part == "N":
            parts.append(str(2 + int(random() ** 3 * 400)))
        else:
            words = SLOTS[part.lower()]
            word = words[int(random() * len(words))]
            parts.append(word[0].upper() + word[1:] if part[0].isupper() else word)
    return "".join(parts)


def prose(rng, tokens, count):
    """Sentences of about that many tokens in total."""
    made, used = [], 0
    while used < tokens:
        made.append(sentence(rng))
        used += count(made[-1])
    return made


def paragraphs(rng, sentences):
    """Joins sentences: a new paragraph after some of them."""
    parts = []
    for text in sentences:
        parts += [text, "\n\n" if rng.random() < 0.15 else " "]
    return "".join(parts[:-1])
