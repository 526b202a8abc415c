#!/usr/bin/env bash
# Model-checks the ring's protocol with loom: claim, commit, peek, release, eviction, revocation,
# sleep and wake. Built separately, since loom's atomics replace the real ones.
#   scripts/loom.sh [build]        only built, with "build"
set -euo pipefail
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}")
export CARGO_TARGET_DIR
cd "$(dirname "$0")/.."

export RUSTFLAGS="--cfg loom ${RUSTFLAGS:-}"
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/loom
if [[ ${1:-} == build ]]; then exec cargo test -q -p throng-ring --lib --locked --no-run; fi
cargo test -p throng-ring --lib --locked -- --nocapture loom_tests
