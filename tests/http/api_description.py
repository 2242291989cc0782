"""docs/openapi.json, and what it demands of a reply."""
import functools
import json
import urllib.parse
from pathlib import Path

import jsonschema

FILE = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
DESCRIPTION = json.loads(FILE.read_text(encoding="utf-8"))
METHODS = ("get", "post", "put", "delete", "patch")


def resolve(node, description=None):
    """The node itself, or what its $ref names."""
    while "$ref" in node:
        target = description or DESCRIPTION
        for name in node["$ref"].removeprefix("#/").split("/"):
            target = target[name.replace("~1", "/").replace("~0", "~")]
        node = target
    return node


def operations():
    """(path, method, operation) of everything described."""
    for path, item in DESCRIPTION["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def request_schema(operation):
    """The schema of the body, or None."""
    if "requestBody" not in operation:
        return None
    return resolve(operation["requestBody"])["content"]["application/json"]["schema"]


def properties_of(schema):
    """Name -> schema of all fields at the top of a body, through $ref, allOf and anyOf."""
    schema = resolve(schema)
    found = dict(schema.get("properties", {}))
    for part in [*schema.get("allOf", ()), *schema.get("anyOf", ())]:
        found.update(properties_of(part))
    return found


@functools.cache
def _validator(text):
    return jsonschema.Draft202012Validator(json.loads(text) | {"components": DESCRIPTION["components"]})


def validate(instance, schema):
    """Raises ValidationError; `schema` may refer to the components."""
    error = jsonschema.exceptions.best_match(_validator(json.dumps(schema)).iter_errors(instance))
    if error is not None:
        raise error


def _is_template_of(template, path):
    wanted, given = template.strip("/").split("/"), path.strip("/").split("/")
    if wanted[-1] == "{model_id}":  # may have slashes
        given = given[:len(wanted) - 1] + ["/".join(given[len(wanted) - 1:])]
    return len(wanted) == len(given) and all(
        want == got or (want.startswith("{") and got) for want, got in zip(wanted, given))


def find_operation(method, path):
    """The described operation of a request, or None. Fixed paths go before those with a variable."""
    path = urllib.parse.unquote(path.split("?")[0]).rstrip("/") or "/"
    path = path.removeprefix("/v1") or "/"
    candidates = [template for template in DESCRIPTION["paths"] if _is_template_of(template, path)]
    for template in sorted(candidates, key=lambda template: template.count("{")):
        return DESCRIPTION["paths"][template].get("get" if method == "HEAD" else method.lower())
    return None


def described_reply(operation, status):
    """The described reply of that status, or None."""
    replies = operation["responses"]
    found = replies.get(str(status)) or replies.get(f"{status // 100}XX")
    return found and resolve(found)


def stream_events(text):
    """The data of each event of a stream; [DONE] as it is."""
    events = []
    for block in text.split("\n\n"):
        for line in block.split("\n"):
            if line.startswith("data: "):
                data = line.removeprefix("data: ")
                events.append(data if data == "[DONE]" else json.loads(data))
    return events


RETRIED_BY_CLIENTS = (408, 409, 429)  # of 4xx: what clients send again by themselves


def check_reply(method, path, status, headers, text):
    """Asserts that a reply is one the description knows, and that what cannot be cured is not to be retried."""
    if 400 <= status < 500 and status not in RETRIED_BY_CLIENTS:
        assert headers["x-should-retry"] == "false", f"{method} {path} answered {status} and wants to be asked again"
    operation = find_operation(method, path)
    if operation is None or method in ("HEAD", "OPTIONS"):
        return
    reply = described_reply(operation, status)
    assert reply is not None, f"{method} {path} answered {status}, which is not described"
    kind = headers["content-type"].split(";")[0]
    assert kind in reply["content"], f"{method} {path} {status} answered {kind}"
    for name, header in reply.get("headers", {}).items():
        assert name in headers or not resolve(header).get("required"), f"{method} {path} {status} has no {name}"
    content = reply["content"][kind]
    if kind == "application/json":
        validate(json.loads(text), content["schema"])
    elif kind == "text/event-stream":
        for event in stream_events(text):
            validate(event, content["x-events"])


def check_response(response):
    """For httpx's event_hooks: replies that are no streams are read and checked."""
    if response.request.method in ("HEAD", "OPTIONS") or response.headers.get(
            "content-type", "").startswith("text/event-stream"):
        return
    text = response.read().decode()  # .text would hide what is no UTF-8
    check_reply(response.request.method, response.request.url.path, response.status_code, response.headers, text)
