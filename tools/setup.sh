#!/usr/bin/env bash
# Installs what building (and testing) Sluice needs. The one list of packages of this project.
#
#   tools/setup.sh build    compiler, libraries, Rust: what ./run needs
#   tools/setup.sh test     the same, and the tools of ./test
#
# Made for Debian 12; newer Debian and Ubuntu work too. When everything is there it only asks dpkg:
# no network, no root, a few milliseconds. All messages go to stderr.
set -euo pipefail

say() { printf 'setup: %s\n' "$*" >&2; }
die() {
  printf 'setup: error: %s\n' "$1" >&2
  shift
  [ $# -eq 0 ] || printf '       %s\n' "$@" >&2
  exit 1
}

purpose="${1:-build}"
case "$purpose" in
  build | test) ;;
  *) die "unknown purpose '$purpose': want build or test" ;;
esac

distribution="$( . /etc/os-release 2>/dev/null && printf '%s %s' "${ID:-unknown}" "${VERSION_ID:-}" || true)"

# Debian 12's default Boost (1.74) has no Boost.JSON of the needed age: take 1.81 by name there.
boost=(libboost-dev libboost-json-dev libboost-url-dev)
rust=(cargo rustc)
if [ "$distribution" = "debian 12" ]; then
  boost=(libboost1.81-dev libboost-json1.81-dev libboost-url1.81-dev)
  rust=(cargo-web rustc-web)  # a current toolchain; the package rustc is from 2022
fi

packages=(g++ cmake ninja-build ccache ca-certificates
  "${boost[@]}" libfmt-dev zlib1g-dev libspdlog-dev libcli11-dev libgtest-dev libgmock-dev
  pkg-config libvips-dev libssl-dev libavformat-dev libavcodec-dev libswscale-dev)
if [ "$purpose" = test ]; then
  packages+=(clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev libbenchmark-dev git python3 python3-venv)
fi

# A Rust toolchain that is already there and new enough (rustup, for one) is used as it is.
rust_needed="$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../rust/Cargo.toml")"
has_rust() {
  local found
  found="$(cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p')"
  [ -n "$found" ] && [ "$(printf '%s\n%s\n' "$rust_needed" "$found" | sort -V | head -n 1)" = "$rust_needed" ]
}
PATH="$PATH:${HOME:-/root}/.cargo/bin"
has_rust || packages+=("${rust[@]}")

# The same for Node, which the tests of the official clients need.
node_needed=18
has_node() {
  local found
  command -v npm >/dev/null 2>&1 || return 1
  found="$(node --version 2>/dev/null | sed -n 's/^v\([0-9]*\).*/\1/p')"
  [ -n "$found" ] && [ "$found" -ge "$node_needed" ]
}
[ "$purpose" != test ] || has_node || packages+=(nodejs npm)

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
  missing=()
  for program in c++ cmake ninja cargo; do
    command -v "$program" >/dev/null 2>&1 || missing+=("$program")
  done
  [ ${#missing[@]} -eq 0 ] || die "this is not a Debian-like system and these programs are missing: ${missing[*]}" \
    "Needed: GCC 12 or newer, CMake 3.25, Ninja, Rust $rust_needed or newer, and the development files of" \
    "Boost 1.81 (headers and JSON), fmt, zlib, spdlog, CLI11, GoogleTest, libvips 8.14, FFmpeg 5.1, OpenSSL 3," \
    "pkg-config. For ./test also clang 19 (clang, clang-tidy, clang-format), Google Benchmark, Python 3.11 with venv and Node $node_needed with npm."
  say "not a Debian-like system: using the installed compiler and libraries"
  exit 0
fi

mapfile -t installed < <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
  sed -n 's/^installed //p')
missing=()
for package in "${packages[@]}"; do
  case " ${installed[*]} " in
    *" $package "*) ;;
    *) missing+=("$package") ;;
  esac
done
if [ ${#missing[@]} -eq 0 ]; then
  has_rust || die "the installed $(cargo --version) is too old: want $rust_needed or newer" \
    "With rustup: rustup update. On Debian: apt-get update && apt-get install ${rust[*]}"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || die "packages are missing and this user cannot install them" \
    "As root, run: apt-get install ${missing[*]}"
  as_root=(sudo)
fi

say "installing with apt-get: ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3)
"${apt[@]}" update >&2 </dev/null || die "apt-get update failed (no network?)" \
  "Once it works again, run: apt-get install ${missing[*]}"
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2 </dev/null ||
  die "apt-get could not install: ${missing[*]}"
has_rust || die "$(cargo --version) is too old: want $rust_needed or newer" \
  "On Debian 12 the package comes from the security archive: is it in the apt sources?"
