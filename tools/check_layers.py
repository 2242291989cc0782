#!/usr/bin/env python3
"""Checks that every #include under src/ obeys the layer table.

The table is the list of sluice_folder(NAME DEPENDS ...) lines in CMakeLists.txt; base/ is open to
all. On top of it: others may include two headers of engine/ alone, engine.h and exactness.h, headers of
a third-party library appear only in the folders that wrap it, and a quoted include names its folder.

    tools/check_layers.py             checks the tree
    tools/check_layers.py --self-test shows that violations are found
"""
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE_SUFFIXES = {".h", ".cpp", ".inl"}

# Folder -> the only headers of it that other folders may include.
PUBLIC_HEADERS = {"engine": {"engine/engine.h", "engine/exactness.h"}}

# The generated header of the Rust crate; only its C++ face may see it.
RUST_HEADER = re.compile(r"^sluice_\w+\.h$")
RUST_FOLDERS = {"text"}

# Prefix of a system include -> the folders that may use it ("tests": only *_test.cpp and test_*.h).
THIRD_PARTY = {
    "boost/asio": {"client", "server"},
    "boost/beast": {"client", "server"},
    "boost/json": {"text", "media", "weights", "api", "client", "load", "server", "validate", "apps"},
    "CLI/": {"apps"},
    "benchmark/": {"bench"},
    "spdlog/": {"server", "apps"},
    "gtest/": {"tests"},
    "gmock/": {"tests"},
    "immintrin.h": {"kernels", "platform"},
    "zlib.h": {"cache", "server", "weights"},
    "vips/": {"media"},
    "libav": {"media"},
    "libswscale/": {"media"},
    "boost/url": {"client", "server"},
    "openssl/": {"client", "media", "server"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
FOLDER_CALL = re.compile(r"^sluice_folder\(\s*(\w+)([^)]*)\)", re.MULTILINE)
KEYWORDS = {"DEPENDS", "LIBRARIES", "EXECUTABLE"}


def read_table(cmake_text):
    """{folder: folders it may include}, from the sluice_folder calls."""
    table = {}
    for name, arguments in FOLDER_CALL.findall(cmake_text):
        depends, keyword = set(), None
        for word in arguments.split():
            if word in KEYWORDS:
                keyword = word
            elif keyword == "DEPENDS":
                depends.add(word)
        table[name] = depends | {name, "base"}
    return table


def check_table(table):
    """The table must name known folders only and have no cycle."""
    problems = [f"CMakeLists.txt: {name} depends on the unknown folder {other}"
                for name, others in table.items() for other in others if other not in table]
    if problems:
        return problems
    remaining = {name: others - {name} for name, others in table.items()}
    while remaining:
        free = [name for name, others in remaining.items() if not others & remaining.keys()]
        if not free:
            return [f"CMakeLists.txt: folders depend on each other: {', '.join(sorted(remaining))}"]
        for name in free:
            del remaining[name]
    return []


def check_quoted(folder, target, table):
    """Why folder may not include "target"; None when it may."""
    if RUST_HEADER.match(target):
        if folder in RUST_FOLDERS:
            return None
        return f'"{target}" is the Rust crate\'s header: only {", ".join(sorted(RUST_FOLDERS))} may include it'
    if "/" not in target:
        return f'"{target}" names no folder: want "{folder}/{target}"'
    other = target.split("/")[0]
    if other not in table:
        return f'"{target}": src/{other} is not a folder of CMakeLists.txt'
    if other not in table[folder]:
        allowed = ", ".join(sorted(table[folder] - {folder}))
        return f'"{target}": {folder} may include only from {allowed}'
    if other != folder and other in PUBLIC_HEADERS and target not in PUBLIC_HEADERS[other]:
        return f'"{target}": the public headers of {other} are {", ".join(sorted(PUBLIC_HEADERS[other]))}'
    return None


def check_system(folder, is_test, target):
    for prefix, folders in THIRD_PARTY.items():
        if target.startswith(prefix):
            if folder in folders or ("tests" in folders and is_test):
                return None
            wrappers = ", ".join(sorted(folders))
            return f"<{target}> is wrapped by {wrappers}: {folder} must not include it"
    return None


def check_tree(source, table):
    """All problems under `source` (the src/ folder) as "file:line: reason"."""
    problems, files = [], 0
    for path in sorted(source.rglob("*")):
        if path.suffix not in SOURCE_SUFFIXES:
            continue
        files += 1
        name = path.relative_to(source)
        folder = name.parts[0]
        if folder not in table:
            problems.append(f"src/{name}:1: no sluice_folder({folder} ...) in CMakeLists.txt")
            continue
        text = path.read_text()
        is_test = path.name.endswith("_test.cpp") or path.name.startswith("test_")
        for match in INCLUDE.finditer(text):
            quoted, system = match.groups()
            reason = (check_quoted(folder, quoted, table) if quoted
                      else check_system(folder, is_test, system))
            if reason:
                line = text.count("\n", 0, match.start(0)) + 1
                problems.append(f"src/{name}:{line}: {reason}")
    return problems, files


def self_test():
    """Plants one violation of each kind and a legal file; every violation must be found."""
    table = read_table("sluice_folder(base)\nsluice_folder(tensor DEPENDS base LIBRARIES x)\n"
                       "sluice_folder(engine DEPENDS tensor\n    LIBRARIES y)\n"
                       "sluice_folder(server DEPENDS engine)\n")
    assert table["engine"] == {"engine", "base", "tensor"}, table
    assert check_table(table) == []
    assert check_table({"a": {"a", "b"}, "b": {"b", "a"}})
    assert check_table({"a": {"a", "nowhere"}})
    cases = {
        "engine/a.cpp": ('#include "tensor/x.h"\n#include "base/y.h"\n#include <vector>\n', 0),
        "tensor/up.cpp": ('// c\n#include "engine/engine.h"\n', 1),
        "server/inner.cpp": ('#include "engine/engine.h"\n#include "engine/loop.h"\n', 1),
        "server/skip.cpp": ('#  include "tensor/x.h"\n', 1),
        "engine/bare.cpp": ('#include "loop.h"\n', 1),
        "engine/beast.cpp": ("#include <boost/beast/http.hpp>\n", 1),
        "engine/a_test.cpp": ('#include <gtest/gtest.h>\n#include "server/x.h"\n', 1),
        "engine/product.cpp": ("#include <gtest/gtest.h>\n", 1),
        "engine/rust.cpp": ('#include "sluice_text.h"\n', 1),
        "lost/a.cpp": ("\n", 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        for name, (text, _) in cases.items():
            (source / name).parent.mkdir(exist_ok=True)
            (source / name).write_text(text)
        problems, files = check_tree(source, table)
    assert files == len(cases)
    for name, (_, want) in cases.items():
        found = [problem for problem in problems if problem.startswith(f"src/{name}:")]
        assert len(found) == want, f"{name}: want {want} problems, found {found}"
    print(f"check_layers self-test: {len(cases)} cases hold")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    if sys.argv[1:]:
        print(__doc__)
        return 2
    table = read_table((ROOT / "CMakeLists.txt").read_text())
    problems = check_table(table)
    files = 0
    if not problems:
        problems, files = check_tree(ROOT / "src", table)
    for problem in problems:
        print(problem)
    print(f"check_layers: {files} files, {len(table)} folders, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
