#!/usr/bin/env python3
"""House rules that no compiler checks: lengths, comments, TODOs, names, READMEs, file sizes.

    tools/tidy.py             checks the files git knows or would add
    tools/tidy.py --self-test shows that each rule finds its violation
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CPP_LINES_MAX = 600     # beyond: the file's first comment says why ("Longer than 600 lines: ...")
HEADER_LINES_MAX = 200  # "up to ~150" in the style; this is the hard stop, same exemption
SCRIPT_LINES_MAX = 600  # Python, shell, Rust
README_LINES_MAX = 120
FOLDER_README_LINES_MAX = 20
FILE_BYTES_MAX = 1_000_000
BIG_FILES_ALLOWED = ("models/", "tests/goldens/", "bench/results/")

# The ratchet: functions longer than .clang-tidy allows carry a NOLINT of readability-function-size
# with a reason. Their number may only go down.
LONG_FUNCTIONS_MAX = 0

CODE = {".h", ".cpp", ".inl", ".rs", ".py", ".sh", ".cmake"}
TEXT = CODE | {".md", ".txt", ".toml", ".yml", ".yaml"}
NOT_NOUNS = {"utils", "util", "common", "helpers", "misc"}
TODO = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(#\d+\))")
# Spelled in pieces so that this file passes its own rule.
WORKPLACE = re.compile("|".join(["/wo" + r"rk/\w", r"\bshared/" + "(?:design|reference|lab)",
                                 "issues " + r"(?:show|list)\b", "api-" + r"contract\.md"]))
LONG_FUNCTION = re.compile(r"NOLINT(?:NEXTLINE|BEGIN)?\(" + "readability-function-size")
SNAKE_CASE = re.compile(r"^[a-z0-9_]+(?:\.[a-z0-9_]+)*$")


def first_comment(lines):
    """The comment lines a file opens with (after a #! line)."""
    comment = []
    for line in lines[1:] if lines and lines[0].startswith("#!") else lines:
        if not line.startswith(("//", "#", '"""', "'''")) or line.startswith(("#include", "#pragma")):
            break
        comment.append(line)
    return "\n".join(comment)


def lines_max(name):
    suffix = Path(name).suffix
    if suffix == ".h" and not Path(name).name.startswith("test_"):
        return HEADER_LINES_MAX
    if suffix in (".h", ".cpp", ".inl"):  # a test_*.h holds code, not a contract
        return CPP_LINES_MAX
    return SCRIPT_LINES_MAX if suffix in (".py", ".sh", ".rs") else None


def check_lengths(name, lines):
    limit = lines_max(name)
    generated = "generated" in first_comment(lines).lower()
    if limit and len(lines) > limit and not generated:
        if not re.search(r"[Ll]onger than \d+ lines", first_comment(lines)):
            yield (f"{name}:1: {len(lines)} lines, want at most {limit}; split it, or let the first "
                   f'comment say "Longer than {limit} lines: <why>"')
    if Path(name).name == "README.md":
        limit = README_LINES_MAX if name == "README.md" else None
        if name.startswith("src/"):
            limit = FOLDER_README_LINES_MAX
        if limit and len(lines) > limit:
            yield f"{name}:1: {len(lines)} lines, want at most {limit}"


def check_opening(name, lines):
    """Headers and lone sources open with a comment on what they own."""
    if Path(name).suffix == ".h" and not first_comment(lines):
        yield f"{name}:1: opens without a comment on what it owns"


def check_words(name, lines):
    for number, line in enumerate(lines, 1):
        if name != "tools/tidy.py" and TODO.search(line):
            yield f"{name}:{number}: a TODO needs an issue number: TODO(#12)"
        if WORKPLACE.search(line):
            yield f"{name}:{number}: speaks of the workplace, not of the product"
        if line != line.rstrip() and not name.endswith(".md"):
            yield f"{name}:{number}: trailing white space"
        if "\t" in line and Path(name).suffix in (".h", ".cpp", ".inl", ".py"):
            yield f"{name}:{number}: tab character"


def check_name(name):
    path = Path(name)
    if path.suffix in (".h", ".cpp", ".inl"):
        stem = path.stem.removesuffix("_test")
        if stem in NOT_NOUNS:
            yield f"{name}:1: '{stem}' is not a noun: name what the file owns"
        if not SNAKE_CASE.match(path.name):
            yield f"{name}:1: file names are snake_case"


def check_text(name, text):
    """All problems of one text file."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    elif text:
        yield f"{name}:{len(lines)}: no newline at the end"
    yield from check_lengths(name, lines)
    yield from check_opening(name, lines)
    yield from check_words(name, lines)


def list_files():
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                             capture_output=True, check=False)
    if listing.returncode == 0:
        return sorted(name for name in listing.stdout.decode().split("\0") if name)
    skipped = {"build", ".git", ".venv", "target", "__pycache__"}  # an unpacked archive
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                  if path.is_file() and not skipped & set(path.relative_to(ROOT).parts))


def check_tree(names):
    long_functions = []
    for name in names:
        path = ROOT / name
        if not path.is_file():
            continue
        size = path.stat().st_size
        if size > FILE_BYTES_MAX and not name.startswith(BIG_FILES_ALLOWED):
            yield f"{name}:1: {size} bytes, want at most {FILE_BYTES_MAX}"
        yield from check_name(name)
        if path.suffix in TEXT or path.name in ("run", "test"):
            try:
                text = path.read_text()
            except UnicodeDecodeError:
                yield f"{name}:1: not UTF-8"
                continue
            yield from check_text(name, text)
            long_functions += [name] * len(LONG_FUNCTION.findall(text))
    if len(long_functions) > LONG_FUNCTIONS_MAX:
        yield (f"tools/tidy.py:1: {len(long_functions)} functions are exempt from the length limit, "
               f"the ratchet allows {LONG_FUNCTIONS_MAX}: {', '.join(sorted(set(long_functions)))}")
    folders = {Path(name).parts[1] for name in names if name.startswith("src/") and name.count("/") > 1}
    for folder in sorted(folders):
        if f"src/{folder}/README.md" not in names:
            yield f"src/{folder}:1: has no README.md"


def self_test():
    long_file = "// Owns x.\n" + "int x;\n" * CPP_LINES_MAX
    cases = [
        ("src/a/x.cpp", "// Owns x.\n// TODO(#3): later\nint x;\n", 0),
        ("src/a/x.cpp", "// TO" "DO: later\n", 1),
        ("src/a/x.h", "#pragma once\n", 1),
        ("src/a/x.h", "// Owns x.\n#pragma once", 1),
        ("src/a/x.cpp", long_file, 1),
        ("src/a/x.cpp", "// Longer than 600 lines: a table.\n" + long_file, 0),
        ("src/a/x.cpp", "int x; \n", 1),
        ("src/a/x.cpp", "\tint x;\n", 1),
        ("src/a/README.md", "line\n" * 21, 1),
        ("README.md", "line\n" * 121, 1),
        ("docs/X.md", "see /wo" + "rk/main\n", 1),
    ]
    for name, text, want in cases:
        found = list(check_text(name, text))
        assert len(found) == want, f"{name} {text[:40]!r}: want {want} problems, found {found}"
    assert list(check_name("src/a/utils.cpp")) and list(check_name("src/a/common_test.cpp"))
    assert list(check_name("src/a/BigName.h")) and not list(check_name("src/a/noun_test.cpp"))
    print(f"tidy self-test: {len(cases) + 4} cases hold")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    if sys.argv[1:]:
        print(__doc__)
        return 2
    names = list_files()
    problems = list(check_tree(names))
    for problem in problems:
        print(problem)
    print(f"tidy: {len(names)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
