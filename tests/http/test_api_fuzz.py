"""Random requests made from docs/openapi.json against the real program: likely ones, valid ones and broken ones.

Whatever comes, the reply is one that the description knows and no fault of the server, and the next request is
answered as ever. `--api-cases N` asks for more cases than the few of a usual run, `--api-seed N` for others.
"""
import collections

import hypothesis
import hypothesis.configuration
import pytest
import schemathesis
from api_description import DESCRIPTION, check_reply, operations, request_schema
from likely_requests import keep_one_grammar, likely_description, shorten
from schemathesis import GenerationMode
from server_process import eventually, serving
from test_data import ROOT

hypothesis.configuration.set_hypothesis_home_dir(ROOT / "build" / "hypothesis")
ASK = {"messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 8, "temperature": 0}
DESCRIBED = schemathesis.openapi.from_dict(DESCRIPTION)
KINDS = {
    "likely": (schemathesis.openapi.from_dict(likely_description()), GenerationMode.POSITIVE),
    "valid": (DESCRIBED, GenerationMode.POSITIVE),
    "broken": (DESCRIBED, GenerationMode.NEGATIVE),
}
CASES = 700
SHARES = {"likely": 0.5, "valid": 0.2, "broken": 0.3}  # of the cases of an operation with a body


@pytest.fixture(scope="module")
def target():
    with serving("--sequences", 4, "--threads", 1, "--enable-debug", "--log-level", "error") as client:
        client.answer = answer(client)
        client.statuses = collections.Counter()
        yield client
        print(f"\nreplies of random requests: {dict(sorted(client.statuses.items()))}")


def answer(client):
    reply = client.post("/v1/chat/completions", json=ASK)
    assert reply.status_code == 200, reply.text
    return reply.json()["choices"]


def is_asked_deadline(case, status):
    return status == 504 and isinstance(case.body, dict) and "timeout" in case.body


def send(client, case):
    response = case.call(base_url=str(client.base_url), timeout=120)
    client.statuses[response.status_code] += 1
    assert response.status_code < 500 or is_asked_deadline(case, response.status_code), response.text
    headers = {name.lower(): values[0] for name, values in response.headers.items()}
    check_reply(case.method, response.request.path_url, response.status_code, headers, response.content.decode())


def plan():
    """(kind, path, method, share of all cases): of what has no body a few, the rest equally."""
    bodies = [(path, method) for path, method, operation in operations() if request_schema(operation) is not None]
    for path, method, _ in operations():
        if (path, method) in bodies:
            for kind, share in SHARES.items():
                yield kind, path, method, 0.95 * share / len(bodies)
        else:
            yield "valid", path, method, 0.05 / (len(list(operations())) - len(bodies))


@pytest.mark.parametrize("kind, path, method, share", [pytest.param(*one, id="-".join(one[:3])) for one in plan()])
def test_random_requests(target, pytestconfig, kind, path, method, share):
    description, mode = KINDS[kind]
    cases = pytestconfig.getoption("--api-cases", default=CASES) or CASES
    seed = pytestconfig.getoption("--api-seed", default=1)

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=max(round(cases * share), 1), database=None, deadline=None,
                         phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
                         suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(case=description[path][method.upper()].as_strategy(generation_mode=mode))
    def attack(case):
        shorten(case.body)
        if kind == "likely":
            keep_one_grammar(case.body)
        send(target, case)

    attack()
    assert eventually(lambda: target.get("/health").json()["running"] == 0)
    assert answer(target) == target.answer
