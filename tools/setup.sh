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
boost=(libboost-dev libboost-json-dev)
rust=(cargo rustc)
if [ "$distribution" = "debian 12" ]; then
  boost=(libboost1.81-dev libboost-json1.81-dev)
  rust=(cargo-web rustc-web)  # a current toolchain; the package rustc is from 2022
fi

packages=(g++ cmake ninja-build ccache ca-certificates
  "${boost[@]}" libfmt-dev libspdlog-dev libcli11-dev libgtest-dev libgmock-dev)
if [ "$purpose" = test ]; then
  packages+=(clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev git python3 python3-venv)
fi

# A Rust toolchain that is already there (rustup, for one) is used as it is.
PATH="$PATH:$HOME/.cargo/bin"
command -v cargo >/dev/null 2>&1 || packages+=("${rust[@]}")

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
  missing=()
  for program in c++ cmake ninja cargo; do
    command -v "$program" >/dev/null 2>&1 || missing+=("$program")
  done
  [ ${#missing[@]} -eq 0 ] || die "this is not a Debian-like system and these programs are missing: ${missing[*]}" \
    "Needed: GCC 12 or newer, CMake 3.25, Ninja, Rust 1.85 or newer, and the development files of" \
    "Boost 1.81 (headers and JSON), fmt, spdlog, CLI11, GoogleTest. For ./test also clang 19" \
    "(clang, clang-tidy, clang-format) and Python 3.11 with venv."
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
[ ${#missing[@]} -gt 0 ] || exit 0

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
