"""A running `sluice serve`, of the random model unless another is named."""
import contextlib
import json
import queue
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import httpx
from test_data import SLUICE, random_model

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60
RUN_SECONDS_MAX = 120


class ServerProcess:
    """Ready to answer once constructed; `log` grows with the lines of stderr."""

    def __init__(self, *arguments, model=None):
        command = [str(SLUICE), "serve", str(model or random_model()), "--port", "0", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.log = []
        self._lines = queue.Queue()
        threading.Thread(target=self._read_stdout, daemon=True).start()
        threading.Thread(target=self._read_stderr, daemon=True).start()
        try:
            self.url = self._wait_for_url()
            assert eventually(self.is_ready, START_SECONDS_MAX), "the server is not ready:\n" + "".join(self.log)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def _read_stdout(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _read_stderr(self):
        for line in self.process.stderr:
            self.log.append(line)

    def _wait_for_url(self):
        prefix = "listening on "
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            line = self._lines.get(timeout=max(deadline - time.monotonic(), 0.1))
            if line.startswith(prefix):
                return line.removeprefix(prefix).strip()
            assert line, "the server ended before it listened:\n" + "".join(self.log)

    def is_ready(self):
        """Before that the server's own first request takes a place in the queue."""
        try:
            with urllib.request.urlopen(self.url + "/ready", timeout=10) as reply:
                return reply.status == 200
        except urllib.error.HTTPError:
            return False

    @property
    def port(self):
        return int(self.url.rsplit(":", 1)[1])

    def connect(self):
        """A raw connection."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=RUN_SECONDS_MAX)
        return connection

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def stop(self):
        """The exit code after one SIGTERM."""
        if self.process.poll() is None:
            self.signal()
            try:
                self.process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


def generate(*arguments):
    """What `sluice generate --json` says: token_ids, text, finish_reason, ..."""
    run = subprocess.run([str(SLUICE), "generate", str(random_model()), "--json", *map(str, arguments)], capture_output=True,
                         text=True, timeout=RUN_SECONDS_MAX, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def eventually(condition, seconds=10.0):
    """Whether `condition()` becomes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


@contextlib.contextmanager
def serving(*arguments):
    """A client of a server of its own over the random model, which must end well."""
    process = ServerProcess("--context", 4096, *arguments)
    with httpx.Client(base_url=process.url, timeout=120) as client:
        yield client
    assert process.stop() == 0, "".join(process.log)


def tokens(count, seed=1):
    """A prompt of token ids; those of one seed begin alike."""
    return [(seed * 7919 + i * i * 31 + i) % 1400 for i in range(count)]
