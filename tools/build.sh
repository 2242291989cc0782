#!/usr/bin/env bash
# tools/build.sh PRESET [TARGET...]: configures build/PRESET when needed and builds the targets
# (all of them when none is named). Messages go to stderr, so that `./run ... --json` stays clean.
#
# One compiler per core, but no more than memory allows: the HTTP server's files need 1.5 GB each.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
preset="$1"
shift
PATH="$PATH:${HOME:-/root}/.cargo/bin"

memory_kb="$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)"
jobs="$(nproc)"
jobs_by_memory=$((memory_kb / 1500000))
[ "$jobs" -le "$jobs_by_memory" ] || jobs=$((jobs_by_memory > 0 ? jobs_by_memory : 1))

build="$root/build/$preset"
if [ ! -f "$build/build.ninja" ] || [ "$root/CMakePresets.json" -nt "$build/build.ninja" ]; then
  printf 'build: configuring build/%s\n' "$preset" >&2
  cmake -S "$root" --preset "$preset" >&2
fi

printf 'build: %s in build/%s with %s jobs\n' "${*:-everything}" "$preset" "$jobs" >&2
ninja -C "$build" -j "$jobs" "$@" >&2
