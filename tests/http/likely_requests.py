"""The description of the API once more, made for generating requests that are likely to be taken.

Bodies have no fields but the named ones, and where most random values would be refused (token ids, schemas,
grammars), values are taken from a few good and a few bad ones.
"""
import copy

from api_description import DESCRIPTION, operations, resolve

TOKEN_ID_MAX = 1425  # of the embedded model
SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}, "required": ["a"], "additionalProperties": False},
    {"type": "array", "items": {"enum": [1, "x", None]}, "maxItems": 2}, {"type": "integer"}, {"const": "é"}, {"not": {}}, {"type": "no"},
    '{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}}}', '{"type":"boolean"}', "{", True,
]
REGEXES = ["[a-z]{3}", "(a|b)+", r"\d*", "[", "", ".{0,9}"]
GRAMMARS = ['start: "a" | "b"', "start: WORD\nWORD: /[a-z]+/", "start: missing", ""]

# At most one of these is taken.
GRAMMAR_FIELDS = ("response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
                  "json_schema")
LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
ANSWER_TOKENS_MAX = 8


def merged(schema, description):
    """A schema without $ref and allOf at its top."""
    schema = dict(resolve(schema, description))
    for part in schema.pop("allOf", ()):
        for key, value in merged(part, description).items():
            if key == "properties":
                schema[key] = {**value, **schema.get(key, {})}
            elif key == "required":
                schema[key] = sorted({*value, *schema.get(key, ())})
            else:
                schema.setdefault(key, value)
    return schema


def closed(schema, description):
    """The same at every depth, with no other fields than the named ones."""
    if isinstance(schema, list):
        return [closed(part, description) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: part if key in ("enum", "const") else closed(part, description)
              for key, part in merged(schema, description).items()}
    if "properties" in schema and "anyOf" not in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def likely_description():
    description = copy.deepcopy(DESCRIPTION)
    parts = description["components"]["schemas"]
    parts["TokenId"]["maximum"] = TOKEN_ID_MAX
    parts["JsonSchema"] = {"enum": SCHEMAS}
    parts["ChatPart"], parts["ImageBlock"] = parts["TextPart"], parts["TextBlock"]  # random pictures are none
    fields = parts["GenerationFields"]["properties"]
    fields["guided_regex"] = fields["structured_outputs"]["properties"]["regex"] = {"enum": REGEXES}
    fields["guided_grammar"] = fields["structured_outputs"]["properties"]["grammar"] = {"enum": GRAMMARS}
    fields["timeout"] = {"enum": [60, 100.5, None]}
    fields["repetition_penalty"] = fields["repeat_penalty"] = {"type": "number", "minimum": 0.01, "maximum": 2}
    parts["ResponseRequest"]["allOf"].append({"required": ["input"]})
    for path, method, _ in operations():
        operation = description["paths"][path][method]
        if "requestBody" in operation:
            content = resolve(operation["requestBody"], description)["content"]["application/json"]
            operation["requestBody"] = {"required": True, "content": {
                "application/json": {"schema": closed(content["schema"], description)}}}
    return description


def shorten(body):
    """Answers of a few tokens, where the body would let them be long."""
    if not isinstance(body, dict) or not {"messages", "prompt", "input"} & body.keys():
        return
    for name in LENGTHS:
        value = body.get(name, 0)
        if value is None or (isinstance(value, int) and (value == -1 or value > ANSWER_TOKENS_MAX)):
            body[name] = ANSWER_TOKENS_MAX
    if not any(name in body for name in LENGTHS):
        body["max_tokens"] = body["max_output_tokens"] = ANSWER_TOKENS_MAX


def keep_one_grammar(body):
    """Two are refused, and with so many fields there would nearly always be two."""
    if isinstance(body, dict):
        present = [name for name in GRAMMAR_FIELDS if body.get(name) is not None]
        for name in present[:-1]:
            del body[name]
