#!/usr/bin/env python3
"""Measures what docs/BENCHMARKS.md tells, one program after the other, and prints its tables.

    tools/setup.sh test && tools/build.sh release sluice bench_kernels
    python3 bench/measure.py OUT [--only STEP ...] [--tables]

Every step leaves OUT/STEP.json; one that is there already is not run again, so that a stopped run goes on. --tables
measures nothing and prints what is there. Whole: about an hour and 12 GiB, on a machine that does nothing else.
"""
import argparse
import collections
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("SLUICE_BUILD", ROOT / "build" / "release"))
SLUICE = [BUILD / "sluice"]
KERNELS = [BUILD / "bench" / "kernels", "--benchmark_repetitions=3", "--json"]
WHOLE = ["--prefill", 512, 2048, 8192, "--decode", 0, 4096, "--batch", 1, 4, 16]
SHORT = ["--prefill", 512, 2048, "--decode", 0, 4096, "--batch", 1, 4]
SERVED = ["validate", "--only", "cache,rates,gaps", "--cache-tokens", 10800, "--quiet"]


def steps(out):
    """Step name: (its command, its environment, whether another process keeps a core busy)."""
    random = out / "random-0.8b"
    made = {}
    made["gemm"] = [*KERNELS, "--benchmark_filter=^gemm_"]
    made["mixers"] = [*KERNELS, "--benchmark_filter=^gated_"]
    made["pictures"] = [*KERNELS, "--benchmark_filter=^vision_encoder/"]
    for preset in ("bf16", "fp8", "int8", "int4"):
        made[f"0.8b-{preset}"] = [*SLUICE, "bench", "--preset", preset, *WHOLE, "--json"]
    made["4b-int4"] = [*SLUICE, "bench", "--shape", "qwen3.5-4b", "--preset", "int4", *SHORT, "--json"]
    made["27b-int4"] = [*SLUICE, "bench", "--shape", "qwen3.6-27b", "--preset", "int4", "--prefill", 512, "--decode", 0,
                        4096, "--batch", 1, 4, "--json"]
    made["0.8b-one-thread"] = [*SLUICE, "bench", "--threads", 1, *SHORT, "--json"]
    for isa in ("avx512", "avx2"):
        made[f"0.8b-{isa}"] = [*SLUICE, "bench", *SHORT, "--json"]
    made["0.8b-busy"] = [*SLUICE, "bench", "--only", "decode", "--decode", 0, "--batch", 1, "--json"]
    made["served-embedded"] = [*SLUICE, *SERVED, "--rate-tokens", "512,2048,8192,32768,65536", "--json"]
    made["served-0.8b"] = [*SLUICE, *SERVED, random, "--rate-tokens", "512,2048,8192,32768", "--json"]
    return {name: (command, {"SLUICE_FORCE_ISA": name.removeprefix("0.8b-")} if "avx" in name else {},
                   name.endswith("busy")) for name, command in made.items()}


@contextlib.contextmanager
def busy_process(wanted):
    """A process that computes and nothing else, meanwhile."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted else None
    try:
        yield
    finally:
        if process:
            process.kill()
            process.wait()


def make_random_model(directory):
    """The 0.8B shape with random weights and the embedded model's text side, to be served."""
    if (directory / "tokenizer.json").exists():
        return
    subprocess.run([sys.executable, ROOT / "tools/random-model/make_model.py", "--preset", "0.8b", "--out", directory],
                   check=True)
    for name in ("tokenizer_config.json", "chat_template.jinja", "generation_config.json", "tokenizer.json"):
        (directory / name).write_bytes((ROOT / "models" / "tiny" / name).read_bytes())


def measure(out, only):
    out.mkdir(parents=True, exist_ok=True)
    for name, (command, environment, busy) in steps(out).items():
        file = out / f"{name}.json"
        if file.exists() or (only and name not in only):
            continue
        if name == "served-0.8b":
            make_random_model(out / "random-0.8b")
        print(f"measure: {name}: {' '.join(map(str, command))}; load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        began = time.monotonic()
        with busy_process(busy):
            run = subprocess.run(list(map(str, command)), env=os.environ | environment, stdout=subprocess.PIPE, check=True)
        file.write_bytes(run.stdout)
        print(f"measure: {name} took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def table(columns, rows):
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    print()


def products(report):
    """Shares of the ceilings over the projections of a model, least to most, by format and rows."""
    shares = collections.defaultdict(list)
    for kernel in report["kernels"]:
        what, model, *_, rows = kernel["name"].split("/")
        product = int(rows[1:]) > 16
        share = kernel["percent_of_product" if product else "percent_of_read"]
        shares[what, model, int(rows[1:]), "product" if product else "read"].append(share)
    table(["format", "model", "rows", "of", "least", "most"],
          [(what.removeprefix("gemm_"), model, rows, of, f"{min(s):.0f} %", f"{max(s):.0f} %")
           for (what, model, rows, of), s in sorted(shares.items())])


def kernels(report):
    table(["case", "ms", "of product", "of read"],
          [(k["name"], f"{1e3 * k['seconds']:.2f}", f"{k['percent_of_product']:.0f} %", f"{k['percent_of_read']:.0f} %")
           for k in report["kernels"]])


def whole_model(report):
    ceiling = report["ceiling"]
    print(f"product {ceiling['flop_per_s'] / 1e12:.1f} TFLOP/s, read {ceiling['read_byte_per_s'] / 1e9:.0f} GB/s, peak "
          f"resident {report['memory']['peak_resident_bytes'] / 2**20:.0f} MiB\n")
    rows = [(f"prefill {case['tokens']}", case) for case in report["prefill"]]
    rows += [(f"decode at {case['context']}, {case['batch']} together", case) for case in report["decode"]]
    table(["case", "tokens/s", "of the roofline"],
          [(name, f"{case['tok_per_s']:.1f}", f"{case['percent_of_ceiling']:.0f} % ({case['bound']})") for name, case in rows])


def served(report):
    for check in report["checks"]:
        if "table" in check:
            print(f"{check['title']}: {check['outcome']}\n")
            table(check["table"]["columns"], check["table"]["rows"])


def print_tables(out):
    for name in steps(out):
        file = out / f"{name}.json"
        if not file.exists():
            continue
        report = json.loads(file.read_text())
        show = {"gemm": products, "mixers": kernels, "pictures": kernels}.get(
            name, served if name.startswith("served") else whole_model)
        print(f"### {name}\n")
        show(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the reports")
    parser.add_argument("--only", nargs="+", default=[], metavar="STEP", help=f"of {', '.join(steps(Path()))}")
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    unknown = set(arguments.only) - set(steps(arguments.out))
    if unknown:
        parser.error(f"--only: no step {', '.join(sorted(unknown))}; there are {', '.join(steps(arguments.out))}")
    if not arguments.tables:
        measure(arguments.out, arguments.only)
    print_tables(arguments.out)


if __name__ == "__main__":
    main()
