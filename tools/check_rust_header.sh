#!/bin/sh
# Fails when rust/include/sluice_text.h is not what the Rust sources generate.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cargo=$(command -v cargo || command -v cargo-web)
CARGO_TARGET_DIR="$root/build/rust-header" exec "$cargo" run --quiet --locked \
    --manifest-path "$root/rust/header/Cargo.toml" -- check
