#!/usr/bin/env python3
"""clang-tidy over the product's sources, skipping files that have not changed since they passed.

    tools/run_clang_tidy.py BUILD_FOLDER [-j N] [--only src/FOLDER]

A file's key is the hash of its compile command, of .clang-tidy, of the clang-tidy version and of the
contents of every project header it reaches. Keys that passed are kept in BUILD_FOLDER/../clang_tidy.
Tests are left out: their assertion macros are slow to analyse and hide nothing users run.
"""
import argparse
import concurrent.futures
import hashlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLANG_TIDY = "clang-tidy-19"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# Flags that GCC knows and clang does not, and those that only cost time here.
DROPPED_FLAGS = {"-fmodules-ts", "-Werror"}


def reach(path, seen):
    """Adds path and all project headers it includes, transitively, to `seen` {path: text}."""
    if path in seen:
        return
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return
    seen[path] = text
    for target in INCLUDE.findall(text):
        for base in (ROOT / "src", path.parent, ROOT / "rust" / "include"):
            if (base / target).is_file():
                reach((base / target).resolve(), seen)
                break


def key_of(entry, setup):
    reached = {}
    reach(Path(entry["file"]).resolve(), reached)
    digest = hashlib.sha256(setup.encode())
    digest.update(entry["command"].encode())
    for path in sorted(reached):
        digest.update(str(path).encode() + b"\0" + reached[path].encode() + b"\0")
    return digest.hexdigest()


def arguments_of(entry):
    """The compile command without compiler, launcher, output and input."""
    words = shlex.split(entry["command"])
    while words and not words[0].startswith("-"):
        words.pop(0)
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-c", "-MF", "-MT"):
            skip = True
        elif word not in DROPPED_FLAGS and not word.startswith("-fsanitize"):
            kept.append(word)
    return kept


def run_one(entry):
    command = [CLANG_TIDY, "--quiet", entry["file"], "--", *arguments_of(entry), "-Wno-everything"]
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True, check=False)
    output = done.stdout
    if done.returncode != 0 and not output.strip():
        output = done.stderr
    return done.returncode == 0, output


def entries_of(build):
    """One entry per product source: src/**/*.cpp but tests."""
    chosen = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if path.is_relative_to(ROOT / "src") and not path.name.endswith("_test.cpp"):
            chosen.setdefault(path, entry)
    return [chosen[path] for path in sorted(chosen)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="files whose path begins with this, such as src/apps")
    options = parser.parse_args()

    version = subprocess.run([CLANG_TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    setup = version + (ROOT / ".clang-tidy").read_text() + Path(__file__).read_text()
    cache = options.build.parent / "clang_tidy"
    cache.mkdir(parents=True, exist_ok=True)
    entries = [(entry, key_of(entry, setup)) for entry in entries_of(options.build)]
    chosen = [(entry, key) for entry, key in entries
              if str(Path(entry["file"]).relative_to(ROOT)).startswith(options.only)]
    todo = [(entry, key) for entry, key in chosen if not (cache / key).exists()]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda pair: (*pair, *run_one(pair[0])), todo)
        for number, (entry, key, passed, output) in enumerate(results, 1):
            print(f"[{number}/{len(todo)}] {Path(entry['file']).relative_to(ROOT)}", flush=True)
            if passed:
                (cache / key).touch()
            else:
                failed += 1
                print(output, flush=True)
    for stale in {path.name for path in cache.iterdir()} - {key for _, key in entries}:
        (cache / stale).unlink()
    print(f"clang-tidy: {len(chosen)} files, {len(chosen) - len(todo)} unchanged, {failed} with problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
