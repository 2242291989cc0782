"""The official Node packages: node/*_cases.mjs, each case a test here.

`./test pytest` installs the packages of node/package-lock.json into build/node.
"""
import json
import re
import shutil
import subprocess

import pytest
from scripted_model import write_scripted_model
from server_process import ServerProcess
from test_data import ROOT, random_model

SCRIPTS = ROOT / "tests" / "http" / "node"
MODULES = ROOT / "build" / "node"
NODE_MAJOR_MIN = 18
OWN_NODE_MAJOR_MIN = {"ai_sdk_cases.mjs": 20}
SECONDS_MAX = 300
CALL = ["<tool_call>", "<function=look><parameter =at>Room 7</parameter></function>\n", "</tool_call>"]
CASE = re.compile(r'^  "([^"]+)": async', re.MULTILINE)


def node_problem(major_min=NODE_MAJOR_MIN):
    """Why nothing can run here, or None."""
    node = shutil.which("node")
    if node is None:
        return "node is not installed"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < major_min:
        return f"node {version} is too old: want {major_min}"
    if not (MODULES / "node_modules" / "openai").is_dir():
        return "the Node packages are not installed: run ./test pytest"
    return None


def cases():
    for script in sorted(SCRIPTS.glob("*_cases.mjs")):
        for name in CASE.findall(script.read_text(encoding="utf-8")):
            yield pytest.param(script.name, name, id=f"{script.stem}: {name}")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Script -> case -> error or None. All cases of a script run in one process."""
    directory = tmp_path_factory.mktemp("scripted")
    write_scripted_model(directory, CALL, after="\n\n")
    servers = {"main": ServerProcess("--context", 2048, "--threads", 1),
               "scripted": ServerProcess("--context", 2048, "--threads", 1, model=directory),
               "busy": ServerProcess("--context", 2048, "--sequences", 1, "--sse-ping", 1, "--threads", 1),
               "strict": ServerProcess("--api-key", "K", "--strict-model", "--sequences", 1, "--queue", 1, "--context", 2048)}
    urls = {name: server.url for name, server in servers.items()}
    ran = {}

    def run(script):
        if script not in ran:
            given = json.dumps(urls | {"modules": str(MODULES), "model": random_model().name})
            done = subprocess.run(["node", SCRIPTS / script, given], capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
            ran[script] = {line["case"]: line["error"] for line in map(json.loads, done.stdout.splitlines())}
            ran[script][None] = done.stderr
        return ran[script]

    yield run
    for server in servers.values():
        assert server.stop() == 0, "".join(server.log)


@pytest.mark.skipif(node_problem() is not None, reason=str(node_problem()))
@pytest.mark.parametrize("script, name", list(cases()))
def test_case(outcomes, script, name):
    if problem := node_problem(OWN_NODE_MAJOR_MIN.get(script, NODE_MAJOR_MIN)):
        pytest.skip(problem)
    said = outcomes(script)
    assert name in said, said[None]
    assert said[name] is None, said[name]
