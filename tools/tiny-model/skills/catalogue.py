"""Made-up tools: what they are called, what they take, how people ask for them and what they return.

A tool is a verb and a noun with some of a set of shared parameters. Its name is made of both, in either order
and often with a word before or behind as servers of tools add it (get_weather, weather_get, norlin_get_weather),
so that it has to be looked up among the declared ones. The wish uses the words of the name, each parameter has
its own little phrase ("in Paris", "for 3 days").
"""
from words import CITIES, COLOURS, DAYS, FOODS, JOBS, MONTHS

# verb: ways to say it
VERBS = {
    "get": ["Get the {n}", "What is the {n}", "Tell me the {n}", "Show me the {n}", "I want to know the {n}"],
    "find": ["Find a {n}", "Look for a {n}", "I am looking for a {n}", "Please find a {n}"],
    "send": ["Send a {n}", "Please send a {n}", "I want to send a {n}"],
    "add": ["Add a {n}", "Please add a {n}", "I want to add a {n}"],
    "book": ["Book a {n}", "Please book a {n}", "I want to book a {n}", "Can you book a {n}"],
    "set": ["Set the {n}", "Please set the {n}", "Can you set the {n}"],
    "start": ["Start the {n}", "Please start the {n}", "Turn on the {n}"],
    "stop": ["Stop the {n}", "Please stop the {n}", "Turn off the {n}"],
    "delete": ["Delete the {n}", "Please delete the {n}", "Remove the {n}"],
    "count": ["Count the {n}", "Please count the {n}"],
    "check": ["Check the {n}", "Please check the {n}", "Can you check the {n}"],
    "open": ["Open the {n}", "Please open the {n}"],
    "buy": ["Buy a {n}", "Please buy a {n}", "I want to buy a {n}"],
    "order": ["Order a {n}", "Please order a {n}", "I want to order a {n}"],
    "read": ["Read the {n}", "Please read the {n}", "Read me the {n}"],
    "play": ["Play the {n}", "Please play the {n}"],
}
NOUNS = ("weather time price news train bus flight room table ticket message letter note song picture light lamp door"
         " timer alarm calendar event task list recipe book file map route car bike taxi boat garden pump oven radio"
         " report order parcel shop doctor school score game word invoice meeting").split()

# parameter: (JSON type, how it is described, phrases, values: a list or (low, high) or None for a name)
PARAMETERS = {
    "city": ("string", "Name of the city", ["in {v}", "for the city {v}"], CITIES),
    "day": ("string", "Day of the week", ["on {v}", "for {v}"], DAYS),
    "month": ("string", "Month", ["in the month {v}", "for the month of {v}"], MONTHS),
    "person": ("string", "Name of the person", ["for {v}", "for the person {v}"], None),
    "receiver": ("string", "Who gets it", ["to {v}"], None),
    "job": ("string", "A job", ["from a {v}", "for a {v}"], JOBS),
    "food": ("string", "Some food", ["with {v}"], FOODS),
    "colour": ("string", "The colour", ["in the colour {v}", "in {v}"], COLOURS),
    "size": (("small", "medium", "large"), "The size", ["in size {v}", "and make it {v}"], None),
    "unit": (("metric", "imperial"), "The units", ["in {v} units"], None),
    "level": (("low", "middle", "high"), "The level", ["at {v} level", "at level {v}"], None),
    "days": ("integer", "Number of days", ["for {v} days"], (2, 30)),
    "count": ("integer", "How many", ["for {v} people", "{v} times"], (2, 20)),
    "minutes": ("integer", "Number of minutes", ["for {v} minutes", "in {v} minutes"], (2, 90)),
    "limit": ("integer", "At most so many", ["with a limit of {v}", "at most {v}"], (2, 50)),
    "amount": ("number", "The amount", ["for {v} coins", "up to {v} coins"], (2, 900)),
    "number": ("integer", "The number", ["number {v}", "with the number {v}"], (2, 999)),
    "loud": ("boolean", "Whether it may be loud", ["loud: {v}", "with loud {v}"], (True, False)),
    "fast": ("boolean", "Whether it must be fast", ["fast: {v}", "with fast {v}"], (True, False)),
}
# Parameters that are asked for by their name only; the split of these is by name too.
NAMED = ("title topic owner group floor shelf row page line kind team address station street bottle brand"
         " author channel volume speed width height weight age score rank version branch label folder code key"
         " tag note").split()
RESULT_KEYS = ("status place price total level number result state date owner score colour temperature").split()


def named(w):
    """A parameter that is asked for by its name; a made-up one can only be copied."""
    return w.draw(lambda: w.pick(NAMED)) if w.chance(0.5) else w.made_up().lower()


def draw_tool(w):
    """A tool of this split: (name, verb, noun, its parameters, which of them are required)."""
    plain = w.draw(lambda: f"{w.pick(list(VERBS))}_{w.pick(NOUNS)}")
    verb, noun = plain.split("_")
    name = w.pick([plain, plain, f"{noun}_{verb}", f"{w.made_up().lower()}_{plain}", f"{plain}_{w.made_up().lower()}"])
    count = w.pick([0, 1, 1, 1, 2, 2, 3])
    parameters = []
    while len(parameters) < count:
        parameter = named(w) if w.chance(0.4) else w.pick(list(PARAMETERS))
        parameters += [parameter] if parameter not in parameters else []
    required = [p for i, p in enumerate(parameters) if i == 0 or w.chance(0.6)]
    return name, verb, noun, parameters, required


def schema(tool):
    """The tool as JSON, in the form of the chat APIs."""
    name, verb, noun, parameters, required = tool
    properties = {}
    for parameter in parameters:
        kind, description, _, _ = described_parameter(parameter)
        typed = {"type": "string", "enum": list(kind)} if isinstance(kind, tuple) else {"type": kind}
        properties[parameter] = {**typed, "description": description}
    described = VERBS[verb][0].format(n=noun) + "."
    return {"type": "function", "function": {"name": name, "description": described, "parameters": {
        "type": "object", "properties": properties, "required": required}}}


def described_parameter(parameter):
    """Its entry of PARAMETERS; a named one is a number or a text by its first letter."""
    if parameter in PARAMETERS:
        return PARAMETERS[parameter]
    numeric = parameter[0] < "l"
    return "integer" if numeric else "string", f"The {parameter}", [], (1, 99) if numeric else None


def draw_value(w, parameter):
    kind, _, _, values = described_parameter(parameter)
    if isinstance(kind, tuple):
        return w.pick(kind)
    if kind == "boolean":
        return w.chance(0.5)
    if kind == "integer":
        return w.number(*values)
    if kind == "number":
        return w.number(*values) + w.pick([0, 0.5])
    return w.pick(values) if values else w.person()


def wish(w, tool, arguments):
    """How a person asks for the call."""
    _, verb, noun, _, _ = tool
    parts = [w.pick(VERBS[verb]).format(n=noun)]
    for parameter, value in arguments.items():
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        phrases = described_parameter(parameter)[2]
        named = f"with {parameter} {shown}"
        parts.append(w.pick(phrases).format(v=shown) if phrases and w.chance(0.8) else named)
    text = " ".join(parts)
    return text + ("?" if text.startswith(("What", "Can")) else ".")


def draw_result(w):
    """What a tool returns: one or two named values."""
    made = {}
    for key in w.rng.sample(RESULT_KEYS, w.pick([1, 1, 2])):
        made[key] = w.pick([w.number(0, 999), w.pick(COLOURS), w.pick(["good", "open", "done", "closed", "full",
                                                                       "ready"])])
    return made
