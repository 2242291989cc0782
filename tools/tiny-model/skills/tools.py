"""Tool use: choose one of the declared tools, fill in its arguments, answer from what it returns."""
import json
import re

from example import Turn
from skills.catalogue import draw_result, draw_tool, draw_value, schema, wish
from skills.facts import Facts
from skills.session import Session, ask, same
from skills.talk import Talk

FRAME_TOKENS = 110   # of the system turn around the tools
TOOL_TOKENS = 85
NEAR = [{"get", "find", "read", "check"}, {"buy", "order", "book"}, {"start", "open", "play", "set"}]
NONE_FITS = "None of my tools can do that."
CALL = re.compile(r"<tool_call>\n<function=(\w+)>\n(.*?)</function>\n</tool_call>", re.DOTALL)
ARGUMENT = re.compile(r"<parameter=(\w+)>\n(.*?)\n</parameter>\n", re.DOTALL)


def calls_in(text):
    """The calls of an answer as (name, arguments as text), and the text without them."""
    calls = [(name, dict(ARGUMENT.findall(body))) for name, body in CALL.findall(text)]
    return calls, CALL.sub("", text).strip()


def makes(calls):
    """A judge: exactly these calls and nothing else."""
    wanted = [(call["name"], {k: v if isinstance(v, str) else json.dumps(v) for k, v in call["arguments"].items()})
              for call in calls]
    return lambda text: calls_in(text) == (wanted, "")


class Tools(Session):
    def open(self):
        w = self.words
        most = max(1, min(6, (self.length - FRAME_TOKENS - 200) // TOOL_TOKENS))
        self.drawn = []
        count = w.number(1, most)
        while len(self.drawn) < count:
            tool = draw_tool(w)
            if not any(self.alike(tool, other) for other in self.drawn):
                self.drawn.append(tool)
        self.tools = [schema(tool) for tool in self.drawn]
        self.fixed_tokens = FRAME_TOKENS + self.count("\n".join(json.dumps(tool) for tool in self.tools))
        inner = (self.rng, self.split, self.length, self.count, self.thinking)
        self.others = [Talk(*inner), Facts(*inner)]

    @staticmethod
    def alike(a, b):
        """Tools that a wish might not tell apart: about the same thing, with verbs that mean nearly the same."""
        return a[2] == b[2] and (a[1] == b[1] or any({a[1], b[1]} <= near for near in NEAR))

    def turn(self):
        chance = self.rng.random()
        if chance < 0.32:
            return self.none_fits()
        if chance < 0.38:
            return self.words.pick(self.others).turn()
        return self.use(2 if chance > 0.85 else 1)

    def none_fits(self):
        w = self.words
        while True:
            tool = draw_tool(w)
            if all(tool[2] != other[2] for other in self.drawn):
                break
        return ask(self.wished(tool)[0], NONE_FITS, f"I look for a tool for the {tool[2]}. There is none.")

    def wished(self, tool):
        """A wish and its call."""
        w = self.words
        _, _, _, parameters, required = tool
        arguments = {p: draw_value(w, p) for p in parameters if p in required or w.chance(0.5)}
        return wish(w, tool, arguments), {"name": tool[0], "arguments": arguments}

    def use(self, count):
        w = self.words
        used = [w.pick(self.drawn) for _ in range(count)]
        wishes, calls = zip(*map(self.wished, used))
        question = " ".join(wishes)
        results = [draw_result(w) for _ in calls]
        answer = " ".join(self.told(result) for result in results)
        messages = [
            {"role": "user", "content": question},
            {"role": "assistant", "content": "", "tool_calls": list(calls),
             "reasoning_content": " ".join(f"I look for a tool for the {tool[2]}. I call {tool[0]}." for tool in used)},
            *({"role": "tool", "content": json.dumps(result)} for result in results),
            {"role": "assistant", "content": answer, "reasoning_content": "I have the result. I tell it."},
        ]
        return Turn(messages, [makes(calls), same(answer)])

    @staticmethod
    def told(result):
        text = " and ".join(f"the {key} is {value}" for key, value in result.items())
        return text[0].upper() + text[1:] + "."
