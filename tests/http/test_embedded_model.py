"""What the embedded model has learnt, asked over HTTP: held-out cases of tools/tiny-model.

Greedy answers are the same on every machine, so the floors are what was seen once: one answer less is a change of the
program or of the model. What the model should reach is in its card (models/tiny/README.md).
"""
import random
import sys

import pytest
from server_process import ServerProcess, eventually
from test_data import EMBEDDED, ROOT

sys.path.insert(0, str(ROOT / "tools" / "tiny-model"))

from evaluate import ROWS, Server, make_case, percent, run_row  # noqa: E402
from render import Renderer  # noqa: E402

# row of the evaluation: cases, percent right at least
FLOORS = {
    "needle, 1K": (20, 95),
    "needle, 8K": (10, 100),
    "several needles": (20, 95),
    "last value wins": (20, 90),
    "sums": (20, 95),
    "lists and letters": (20, 100),
    "tools": (30, 80),
    "facts told earlier": (20, 80),
    "system rules": (20, 90),
    "small talk": (20, 80),
}


@pytest.fixture(scope="module")
def embedded():
    process = ServerProcess("--context", 16384, "--threads", 1, model=EMBEDDED)
    yield process
    assert process.stop() == 0, "".join(process.log)


@pytest.fixture(scope="module")
def renderer():
    return Renderer(str(EMBEDDED))


@pytest.mark.parametrize("row", FLOORS)
def test_it_can_do_what_it_was_taught(embedded, renderer, row):
    count, least = FLOORS[row]
    skill, length, turns, _ = ROWS[row]
    dice = random.Random(f"test {row}")
    cases = [make_case(dice, skill, length, turns, renderer.count) for _ in range(count)]
    results = run_row(Server(embedded.url), cases, parallel=4)
    wrong = [result for result in results if not result["right"]]
    assert percent(results, "right") >= least, wrong[:3]
    assert percent(results, "well_formed") == 100, [r for r in results if not r["well_formed"]]
