"""Fixtures of tests/media: the media_tool program."""
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1])]

from test_data import BUILD  # noqa: E402


class MediaTool:
    """One running media_tool; each call sends one request and returns its answer."""

    def __init__(self, folder):
        self.folder = folder
        self.process = subprocess.Popen([str(BUILD / "media_tool")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=(folder / "stderr").open("wb"))

    def ask(self, op, **fields):
        self.process.stdin.write(json.dumps({"op": op, **fields}).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"media_tool ended with {self.process.wait()} on {op} {str(fields)[:200]}"
        return json.loads(answer)

    def decode(self, data):
        """The RGB array of a file's bytes, or the answer that says why not."""
        (self.folder / "in").write_bytes(data)
        answer = self.ask("decode", path=str(self.folder / "in"), out=str(self.folder / "out"))
        if "error" in answer:
            return answer
        pixels = np.frombuffer((self.folder / "out").read_bytes(), np.uint8)
        return pixels.reshape(answer["height"], answer["width"], 3)

    def resize(self, pixels, width, height):
        (self.folder / "in").write_bytes(pixels.tobytes())
        self.ask("resize", path=str(self.folder / "in"), out=str(self.folder / "out"),
                 to=[width, height], **{"from": [pixels.shape[1], pixels.shape[0]]})
        return np.frombuffer((self.folder / "out").read_bytes(), np.uint8).reshape(height, width, 3)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        assert (self.folder / "stderr").read_bytes() == b"", "media/ wrote to stderr"


@pytest.fixture(scope="session")
def tool(tmp_path_factory):
    if not (BUILD / "media_tool").exists():
        pytest.fail(f"{BUILD / 'media_tool'} is missing: build the target media_tool, or set SLUICE_BUILD")
    running = MediaTool(tmp_path_factory.mktemp("media"))
    yield running
    running.close()
