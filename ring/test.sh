#!/usr/bin/env bash
# All tests of the ring: Rust and C, the model checker, Python, GStreamer. Tests that need something
# this machine lacks are skipped with a message.
#   ring/test.sh [build]      only built, with "build"
# Builds into CARGO_TARGET_DIR, or ring/target.
set -uo pipefail
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-$(dirname "$0")/target}")
export CARGO_TARGET_DIR
cd "$(dirname "$0")"
build=${1:-}

# cargo-nextest runs each test in a separate process and writes a report; without it `cargo test`
# runs the same tests.
rust() {
  local runner=(test)
  if cargo nextest --version >/dev/null 2>&1; then runner=(nextest run); fi
  cargo "${runner[@]}" --workspace --locked ${build:+--no-run}
}

status=0
for step in rust loom python gstreamer; do
  case $step in rust) rust ;; *) scripts/$step.sh $build ;; esac || {
    echo "FAILED: ring/test.sh: $step"; status=1
  }
done
exit $status
