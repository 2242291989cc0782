"""Counts of passed, failed and skipped cases, read from GoogleTest, ctest and pytest reports."""
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


class Tally:
    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skips = Counter()  # reason -> cases

    @property
    def failed(self):
        return len(self.failures)

    @property
    def skipped(self):
        return sum(self.skips.values())

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        self.skips.update(other.skips)

    def check(self, name, passed):
        """One check that either holds or does not."""
        if passed:
            self.passed += 1
        else:
            self.failures.append(name)

    def skip(self, reason, cases=1):
        self.skips[reason] += cases

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def first_line(text):
    return (text or "no reason given").strip().split("\n")[0]


def tally_gtest(path, prefix):
    """The cases of one GoogleTest XML report."""
    tally = Tally()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{prefix}{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failures.append(name)
        elif skipped is not None:
            message = (skipped.get("message") or skipped.text or "").strip().split("\n")
            tally.skip(message[-1] or "no reason given")  # the first line is file:line
        elif case.get("status") == "notrun" or case.get("result") == "suppressed":
            tally.skip("disabled test")
        else:
            tally.passed += 1
    return tally


def tally_ctest(junit, gtest_folder, prefix):
    """The cases of a ctest run whose programs wrote GoogleTest reports into gtest_folder.

    A program without a report counts as one case; one that failed beyond its report (a crash, a
    sanitizer, a time-out) counts as one failure more.
    """
    tally = Tally()
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        program = case.get("name")
        failed = case.find("failure") is not None or case.get("status") == "fail"
        report = Path(gtest_folder) / f"{program}.xml"
        if report.exists():
            inner = tally_gtest(report, f"{prefix}{program}: ")
            tally.add(inner)
            if failed and not inner.failures:
                tally.failures.append(f"{prefix}{program}: ended badly although every case passed")
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            tally.failures.append(f"{prefix}{program}: was not run")
        else:
            tally.check(f"{prefix}{program}", not failed)
    return tally


def tally_pytest(junit, prefix):
    tally = Tally()
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        name = f"{prefix}{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failures.append(name)
        elif skipped is not None:
            tally.skip(first_line(skipped.get("message")))
        else:
            tally.passed += 1
    return tally


def tally_cargo(output, prefix):
    """The 'test result:' lines of cargo test."""
    tally = Tally()
    for line in output.splitlines():
        words = line.replace(";", " ").split()
        if line.startswith("test result:"):
            tally.passed += int(words[words.index("passed") - 1])
            if int(words[words.index("ignored") - 1]):
                tally.skip("ignored Rust test", int(words[words.index("ignored") - 1]))
        elif line.startswith("test ") and line.rstrip().endswith("... FAILED"):
            tally.failures.append(prefix + words[1])
    return tally
