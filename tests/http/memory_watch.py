"""Resident memory of a running server: sampled, and against the plan it prints at the start."""
import re
import statistics
import threading
from pathlib import Path

MIB = 1 << 20
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
STREAM_BYTES = 256 << 10  # of one request: its body, its text and what its client has not taken yet
STORES_BYTES = 10 * MIB   # stored responses, calls and grammars, as far as these tests fill them; code run for the first time
PLANNED = ("weights", "KV cache", "states", "logits", "workspace")


def planned_bytes(log):
    """What the line "memory: ..." of the start says, by name; kept prefixes are "kept"."""
    line = next(line for line in log if line.startswith("memory: "))
    amounts = {name: re.search(rf"\b{name} ([\d.]+) (\w+)", line).groups() for name in PLANNED}
    amounts["kept"] = re.search(r", ([\d.]+) (\w+) more for kept prefixes", line).groups()
    return {name: int(float(value) * UNITS[unit]) for name, (value, unit) in amounts.items()}


def status_bytes(pid, name):
    """VmRSS, VmHWM (the highest VmRSS so far), RssAnon, ..."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {name} in /proc/{pid}/status")


class MemoryWatch:
    """Samples a server's memory until stop(). At the start the model is loaded and nobody has asked anything."""

    def __init__(self, server, streams, seconds_between=0.5):
        self.streams = streams
        self.pid = server.process.pid
        self.plan = planned_bytes(server.log)
        self.at_start = status_bytes(self.pid, "VmRSS")
        self.samples = [self.at_start]
        self.peak = self.at_start
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(seconds_between,), daemon=True)
        self._thread.start()

    def _run(self, seconds_between):
        while not self._ended.wait(seconds_between):
            self.sample()

    def sample(self):
        self.samples.append(status_bytes(self.pid, "VmRSS"))

    def stop(self):
        self._ended.set()
        self._thread.join()
        self.sample()
        self.peak = status_bytes(self.pid, "VmHWM")

    def limit(self):
        """The program as it starts, what the plan allows to be touched later, and what is beside the plan."""
        return self.at_start + sum(self.plan.values()) - self.plan["weights"] + STORES_BYTES + self.streams * STREAM_BYTES

    def growth(self):
        """Bytes gained over the second half of the samples: median of its last fifth less that of its first."""
        second = self.samples[len(self.samples) // 2:]
        fifth = max(len(second) // 5, 1)
        return int(statistics.median(second[-fifth:]) - statistics.median(second[:fifth]))

    def report(self):
        return {"rss_at_start_mib": round(self.at_start / MIB, 1), "rss_peak_mib": round(self.peak / MIB, 1),
                "rss_end_mib": round(self.samples[-1] / MIB, 1), "rss_growth_mib": round(self.growth() / MIB, 2),
                "planned_mib": round(sum(self.plan.values()) / MIB, 1), "limit_mib": round(self.limit() / MIB, 1),
                "rss_samples_mib": [round(value / MIB, 1) for value in self.samples[::max(len(self.samples) // 24, 1)]]}

