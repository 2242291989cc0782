"""CONFORMANCE.md names tests that exist."""
import re
from pathlib import Path

from test_data import ROOT

FOLDER = Path(__file__).parent
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
ROWS = ROW.findall((FOLDER / "CONFORMANCE.md").read_text(encoding="utf-8"))


def test_every_number_once():
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 101))


def test_named_tests_exist():
    named = 0
    for number, _, shown in ROWS:
        for quoted in re.findall(r"`([^`]+)`", shown):
            if "::" in quoted:
                module, test = quoted.split("::")
                text = (FOLDER / f"{module}.py").read_text(encoding="utf-8")
                assert re.search(rf"^def {test}\(", text, re.MULTILINE), (number, quoted)
                named += 1
            elif quoted.startswith("src/"):
                path, test = quoted.split(" ")
                suite, case = test.split(".")
                assert re.search(rf"TEST(_F)?\({suite}, {case}\)", (ROOT / path).read_text(encoding="utf-8")), (number, quoted)
                named += 1
            elif quoted.endswith((".py", ".md")):
                assert (FOLDER / quoted).exists() or (ROOT / quoted).exists(), (number, quoted)
    assert named > 100


def test_nothing_is_shown_by_nothing():
    for number, _, shown in ROWS:
        assert "`" in shown or "**open**" in shown, number
