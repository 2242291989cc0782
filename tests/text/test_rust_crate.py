"""The Rust crate's own tests, and whether its C header is what the sources generate."""
import os
import shutil
import subprocess

import pytest

from conftest import ROOT


def run(command, **variables):
    result = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def cargo():
    found = shutil.which("cargo") or shutil.which("cargo-web")
    assert found, "neither cargo nor cargo-web is installed"
    return found


def test_header_is_up_to_date(cargo):
    run([str(ROOT / "tools" / "check_rust_header.sh")])


def test_unit_tests(cargo):
    # The folder and profile of the product's build: its dependencies are compiled already.
    run([cargo, "test", "--quiet", "--release", "--locked", "--lib", "--manifest-path", "rust/Cargo.toml"],
        CARGO_TARGET_DIR=str(ROOT / "build" / "rust"))
