#!/usr/bin/env python3
"""./test: everything that must hold before a change goes in.

    ./test              all steps; half an hour from nothing, minutes when little changed
    ./test fast         checks, release build, fast C++ tests
    ./test STEP...      only these steps, in the given order
    ./test --help       this text, with the steps

The last line is "N passed, N failed, N skipped": every GoogleTest, Rust and pytest case, every
check, every fuzz target. The exit status is 0 only when nothing failed.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tally import Tally, tally_cargo, tally_ctest, tally_pytest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test_results"
JOBS = os.cpu_count() or 2
ISAS = ("ref", "avx2", "avx512", "amx")
TSAN_FOLDERS = ("platform", "load", "engine", "server")
TSAN_FILTER = "-EngineLoop.*:PrefixReuse.*"  # suites of one thread, minutes under ThreadSanitizer


def run(command, **options):
    """Runs with output shown; True when it succeeded."""
    sys.stdout.flush()
    return subprocess.run([str(word) for word in command], cwd=ROOT, check=False, **options).returncode == 0


def build(preset, *targets):
    return run([ROOT / "tools" / "build.sh", preset, *targets])


def built(tally, preset, *targets):
    """Builds; a failure is counted, success is not (the tests that follow are what counts)."""
    passed = build(preset, *targets)
    if not passed:
        tally.failures.append(f"build of {preset}")
    return passed


def ctest(tally, preset, name, *selection, gtest_filter="*"):
    """Runs the selected ctest programs of a preset and adds their cases under `name`."""
    folder = RESULTS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    junit = folder / "ctest.junit"
    variables = dict(os.environ, GTEST_OUTPUT=f"xml:{folder}/", GTEST_COLOR="no", GTEST_FILTER=gtest_filter)
    run(["ctest", "--test-dir", ROOT / "build" / preset, "-j", JOBS, "--output-on-failure", "--no-tests=error",
         "--timeout", "900", "--output-junit", junit, *selection], env=variables)
    if not junit.exists():
        tally.failures.append(f"{name}: ctest did not run")
        return
    tally.add(tally_ctest(junit, folder, f"{name}: "))


def pytest(tally, name, *selection, environment=None):
    """Runs the selected pytest files in the .venv and adds their cases under `name`."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    junit = RESULTS / f"{name}.junit"
    junit.unlink(missing_ok=True)
    passed = run([ROOT / ".venv" / "bin" / "python", "-m", "pytest", "-q", "-rfEs", "-n", JOBS, "--dist", "worksteal",
                  f"--junit-xml={junit}", *selection],
                 env=dict(os.environ, **(environment or {})))
    if not junit.exists():
        tally.failures.append(f"{name}: pytest did not run")
        return
    counted = tally_pytest(junit, f"{name}: ")
    tally.add(counted)
    if not passed and not counted.failures:
        tally.failures.append(f"{name}: pytest ended badly although every case passed")


# --- The steps, in the order of a full run. ---


def step_layers(tally):
    """layer table against every #include, with the checker's self-test"""
    tool = ROOT / "tools" / "check_layers.py"
    tally.check("check_layers self-test", run([sys.executable, tool, "--self-test"]))
    tally.check("check_layers", run([sys.executable, tool]))


def step_tidy(tally):
    """repository tidiness: lengths, comments, TODOs, READMEs"""
    tool = ROOT / "tools" / "tidy.py"
    tally.check("tidy self-test", run([sys.executable, tool, "--self-test"]))
    tally.check("tidy", run([sys.executable, tool]))


def step_format(tally):
    """clang-format of all C++ files"""
    files = [path for folder in ("src", "fuzz", "tests", "bench")
             for suffix in ("*.h", "*.cpp", "*.inl") for path in sorted((ROOT / folder).rglob(suffix))]
    tally.check("clang-format", run(["clang-format-19", "--dry-run", "-Werror", *files]))
    print(f"clang-format: {len(files)} files")


def step_release(tally):
    """release build and the fast C++ tests"""
    if built(tally, "release"):
        ctest(tally, "release", "release", "-L", "fast")


def step_isa(tally):
    """the command line with each instruction set forced (the C++ tests compare all of them anyway)"""
    binary = ROOT / "build" / "release" / "sluice"
    if not built(tally, "release", "sluice") or not prepared_venv(tally):
        return
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout
    supported = re.search(r"supported:([a-z0-9 ]*)", version)
    if not supported:
        tally.failures.append("isa: sluice --version does not list the supported instruction sets")
        return
    for isa in ISAS:
        if isa in supported.group(1).split():
            print(f"-- SLUICE_FORCE_ISA={isa}")
            pytest(tally, f"isa_{isa}", "tests/cli/test_cli_runs.py", environment={"SLUICE_FORCE_ISA": isa})
        else:
            tally.skip(f"SLUICE_FORCE_ISA={isa}: this machine does not have it")


def step_asan(tally):
    """the fast tests under AddressSanitizer and UndefinedBehaviorSanitizer"""
    if built(tally, "asan", "fast_tests"):
        ctest(tally, "asan", "asan", "-L", "fast")


def step_tsan(tally):
    """the tests with threads under ThreadSanitizer"""
    present = [f"{folder}_test" for folder in TSAN_FOLDERS if list((ROOT / "src" / folder).rglob("*_test.cpp"))]
    if built(tally, "tsan", *present):
        ctest(tally, "tsan", "tsan", "-R", f"^({'|'.join(present)})$", gtest_filter=TSAN_FILTER)


def step_rust(tally):
    """tests of the Rust crate, and its header against the generator"""
    manifest = ROOT / "rust" / "Cargo.toml"
    variables = dict(os.environ, CARGO_TARGET_DIR=str(ROOT / "build" / "rust"))
    done = subprocess.run(["cargo", "test", "--release", "--locked", "--manifest-path", str(manifest)],
                          env=variables, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    counted = tally_cargo(done.stdout, "rust: ")
    tally.add(counted)
    if done.returncode != 0 and not counted.failures:
        tally.failures.append("rust: cargo test failed")
    tally.check("rust: generated header", run([ROOT / "tools" / "check_rust_header.sh"]))


def step_fuzz(tally):
    """each fuzz target for a few seconds, keeping what it learnt"""
    targets = sorted(path.stem for path in (ROOT / "fuzz").glob("*_fuzz.cpp"))
    if built(tally, "asan", *targets):
        ctest(tally, "asan", "fuzz", "-L", "fuzz")


def step_clang_tidy(tally):
    """clang-tidy over sources that changed since they passed"""
    if not (ROOT / "build" / "release" / "compile_commands.json").exists() and not built(tally, "release"):
        return
    tool = ROOT / "tools" / "run_clang_tidy.py"
    tally.check("clang-tidy", run([sys.executable, tool, ROOT / "build" / "release", "-j", JOBS]))


def prepare_venv():
    """A .venv with the pinned requirements of tests/*/requirements.txt; remade only when they change."""
    requirements = sorted((ROOT / "tests").glob("*/requirements.txt"))
    content = hashlib.sha256(b"\0".join(path.read_bytes() for path in requirements)).hexdigest()
    venv, stamp = ROOT / ".venv", ROOT / ".venv" / "requirements.sha256"
    if stamp.exists() and stamp.read_text() == content:
        return True
    arguments = [word for path in requirements for word in ("-r", path)]
    if not (run([sys.executable, "-m", "venv", venv]) and
            run([venv / "bin" / "python", "-m", "pip", "install", "--quiet",
                 "--disable-pip-version-check", *arguments])):
        return False
    stamp.write_text(content)
    return True


def prepare_node():
    """The Node packages of tests/http/node in build/node; remade only when the lock file changes."""
    source, target = ROOT / "tests" / "http" / "node", ROOT / "build" / "node"
    content = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()
    stamp = target / "package-lock.sha256"
    if stamp.exists() and stamp.read_text() == content:
        return True
    target.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, target / name)
    if not run(["npm", "ci", "--silent", "--no-audit", "--no-fund", "--prefix", target]):
        return False
    stamp.write_text(content)
    return True


def prepared_venv(tally):
    passed = prepare_venv()
    if not passed:
        tally.failures.append("the packages of tests/*/requirements.txt could not be installed")
    return passed


def step_pytest(tally):
    """the product from outside: command line, HTTP, goldens"""
    if not built(tally, "release") or not prepared_venv(tally):
        return
    if not prepare_node():
        tally.failures.append("the packages of tests/http/node could not be installed")
    pytest(tally, "pytest", "tests")


STEPS = {
    "layers": step_layers,
    "tidy": step_tidy,
    "format": step_format,
    "release": step_release,
    "isa": step_isa,
    "pytest": step_pytest,
    "rust": step_rust,
    "asan": step_asan,
    "tsan": step_tsan,
    "fuzz": step_fuzz,
    "clang-tidy": step_clang_tidy,
}
FAST = ("layers", "tidy", "format", "release")


def main():
    listing = "\n".join(f"  {name:<12}{step.__doc__}" for name, step in STEPS.items())
    parser = argparse.ArgumentParser(prog="./test", description=__doc__, epilog=f"steps:\n{listing}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help='"fast", or names of steps; default: all')
    chosen = parser.parse_args().steps or list(STEPS)
    chosen = [name for word in chosen for name in (FAST if word == "fast" else (word,))]
    unknown = [name for name in chosen if name not in STEPS]
    if unknown:
        parser.error(f"unknown step {unknown[0]}: want fast, {', '.join(STEPS)}")

    total, begin = Tally(), time.monotonic()
    for name in chosen:
        print(f"\n== {name}: {STEPS[name].__doc__}", flush=True)
        tally, step_begin = Tally(), time.monotonic()
        STEPS[name](tally)
        print(f"== {name}: {tally} in {time.monotonic() - step_begin:.0f} s", flush=True)
        total.add(tally)

    print(f"\n== all steps took {time.monotonic() - begin:.0f} s")
    for reason, cases in sorted(total.skips.items()):
        print(f"skipped: {cases} x {reason}")
    for failure in total.failures:
        print(f"FAILED: {failure}")
    print(total)
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
