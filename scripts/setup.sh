#!/bin/sh
# Says in one line what this machine lacks to build grouse, and installs the pinned Rust toolchain where rustup can.
set -eu
cd "${0%/*}/.."

missing=""
lacks() { missing="${missing:+$missing; }$1"; }
for tool in git make; do command -v $tool >/dev/null 2>&1 || lacks "$tool"; done
command -v cc >/dev/null 2>&1 || lacks "a C compiler named cc (Debian: apt-get install build-essential)"
command -v cargo >/dev/null 2>&1 || lacks "cargo (install rustup, see rustup.rs)"
if ! command -v python3 >/dev/null 2>&1; then lacks "python3 3.11 or newer"
elif ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then lacks "python3 3.11 or newer (found $(python3 -V 2>&1))"; fi
if [ -n "$missing" ]; then echo "grouse needs what this machine lacks: $missing" >&2; exit 1; fi

cargo --version >/dev/null 2>&1 && exit 0
channel=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
echo "installing Rust $channel, which rust-toolchain.toml asks for"
if ! rustup toolchain install --profile minimal --component clippy --component rustfmt "$channel"; then
    echo "grouse needs what this machine lacks: Rust $channel (cargo says: $(cargo --version 2>&1 | head -n 1))" >&2
    exit 1
fi
