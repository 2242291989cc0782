"""Fixtures: one server over the random model for most tests, and the official client for it."""
import sys
from pathlib import Path

import httpx
import openai
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from api_description import check_response  # noqa: E402
from server_process import ServerProcess  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--api-cases", type=int, help="random requests of test_api_fuzz.py")
    parser.addoption("--api-seed", type=int, default=1, help="their seed")


@pytest.fixture(scope="session")
def server():
    process = ServerProcess("--context", 2048, "--sequences", 4)
    yield process
    assert process.stop() == 0, "".join(process.log)


@pytest.fixture(scope="session")
def client(server):
    """The OpenAI client, without its own retries: an error must show at once."""
    with openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0) as made:
        made._client.event_hooks["response"].append(check_response)
        yield made


@pytest.fixture(scope="session")
def http(server):
    """Every whole reply is checked against docs/openapi.json."""
    with httpx.Client(base_url=server.url, timeout=60, event_hooks={"response": [check_response]}) as made:
        yield made
