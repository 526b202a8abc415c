#!/usr/bin/env bash
# What needs no run to be seen: formatting, lints, documentation, dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step "formatting"; cargo fmt --all --check
step "lints"; cargo clippy --workspace --all-targets --locked -- -D warnings
# Workspaces of their own, whose crates only those have who built them once: scripts/ring-python.sh, ring-gstreamer.sh.
lint_binding() { # NAME
  local manifest=bindings/$1/Cargo.toml
  cargo fmt --manifest-path "$manifest" --check
  if cargo metadata --offline --locked --format-version 1 --manifest-path "$manifest" >/dev/null 2>&1; then
    cargo clippy --offline --locked --all-targets --manifest-path "$manifest" \
      --target-dir "${CARGO_TARGET_DIR:-target}/$1" -- -D warnings
  else
    echo "bindings/$1 is not linted: its dependencies are not here"
  fi
}
step "lints of the bindings"
if command -v python3 >/dev/null; then lint_binding python; else echo "bindings/python is not linted: no python3"; fi
if pkg-config --atleast-version=1.22 gstreamer-base-1.0 2>/dev/null; then lint_binding gstreamer
else echo "bindings/gstreamer is not linted: no libgstreamer1.0-dev"; fi

step "the test report"
if command -v python3 >/dev/null; then scripts/test-report-laws.py; else echo "its laws are not tried: no python3"; fi

step "docs"; RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
step "dependencies"
if ! command -v cargo-deny >/dev/null; then echo "SKIPPED: dependencies are not checked, cargo-deny is not installed"; exit 0; fi
cargo deny --log-level error check licenses bans sources
# The advisory database lives outside the package registry; where it cannot be reached that is said, not hidden.
cargo deny --log-level error check advisories || {
  [[ -d ~/.cargo/advisory-dbs ]] && compgen -G "$HOME/.cargo/advisory-dbs/*/crates" >/dev/null && exit 1
  echo "advisories not checked: the advisory database cannot be reached from here"
}
