#!/usr/bin/env bash
# Model-checks the ring's protocol with loom: claim, commit, peek, release, eviction, revocation, sleep and wake. Built
# apart, since loom's atomics take the place of the real ones.
#   scripts/ring-loom.sh [build]        only built, with "build"
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTFLAGS="--cfg loom ${RUSTFLAGS:-}"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/loom
if [[ ${1:-} == build ]]; then exec cargo test -q -p throng-ring --lib --locked --no-run; fi
cargo test -p throng-ring --lib --locked -- --nocapture loom_tests
