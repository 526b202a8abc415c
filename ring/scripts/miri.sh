#!/usr/bin/env bash
# Runs the ring's protocol, in private memory and on one process, under Miri: undefined behaviour,
# data races, leaks. Needs the nightly toolchain with Miri; without it, reports that and ends with
# 77.
set -euo pipefail
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}")
export CARGO_TARGET_DIR
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
  echo "Miri is skipped: no nightly toolchain with it (rustup toolchain install nightly --component miri)"
  exit 77
fi
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/miri
# The models read randomness from the system, which Miri's isolation forbids.
export MIRIFLAGS="-Zmiri-disable-isolation ${MIRIFLAGS:-}"
cargo +nightly miri test -p throng-ring --lib --locked
