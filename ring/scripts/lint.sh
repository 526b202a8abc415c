#!/usr/bin/env bash
# Formatting, lints and documentation of the ring. Python's and GStreamer's crates are linted where
# their dependencies have been downloaded, which building them once does (scripts/python.sh,
# scripts/gstreamer.sh).
set -euo pipefail
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}")
export CARGO_TARGET_DIR
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
lint_binding() { # NAME
  local manifest=$1/Cargo.toml
  cargo fmt --manifest-path "$manifest" --check
  if cargo metadata --offline --locked --format-version 1 --manifest-path "$manifest" \
    >/dev/null 2>&1; then
    cargo clippy --offline --locked --all-targets --manifest-path "$manifest" \
      --target-dir "$CARGO_TARGET_DIR/$1" -- -D warnings
  else
    echo "ring/$1 is not linted: its dependencies are not here"
  fi
}
if command -v python3 >/dev/null; then
  lint_binding python
else
  echo "ring/python is not linted: no python3"
fi
if pkg-config --atleast-version=1.22 gstreamer-base-1.0 2>/dev/null; then lint_binding gstreamer
else echo "ring/gstreamer is not linted: no libgstreamer1.0-dev"; fi
