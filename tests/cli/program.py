"""Runs of the built program."""
import os
import subprocess

from test_data import ROOT, SLUICE, random_model

RANDOM = random_model()  # has a tokenizer
NO_TOKENIZER = ROOT / "tests" / "goldens" / "tiny08"  # can only be driven by token ids
RUN_SECONDS_MAX = 120


def sluice(*arguments, stdin="", **environment):
    """The finished run, with returncode, stdout and stderr (text)."""
    return subprocess.run([str(SLUICE), *map(str, arguments)], env=dict(os.environ, **environment), input=stdin,
                          capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False)


def start(*arguments):
    """The running program, with pipes."""
    return subprocess.Popen([str(SLUICE), *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def assert_error(run, code, *parts):
    """The run failed in the agreed way: exit code, one message on stderr with the parts, nothing on stdout."""
    assert run.returncode == code, run.stderr
    assert run.stdout == ""
    messages = [line for line in run.stderr.splitlines() if line.startswith("sluice: error: ")]
    assert len(messages) == 1, run.stderr
    for part in parts:
        assert part in messages[0], run.stderr
