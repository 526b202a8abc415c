#!/usr/bin/env bash
# Checks that need no run: formatting, lints, documentation, dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step "formatting"; cargo fmt --all --check
step "lints"; cargo clippy --workspace --all-targets --locked -- -D warnings
step "the ring"; CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target} ring/scripts/lint.sh

step "the test report"
if command -v python3 >/dev/null; then scripts/test-report-laws.py; else echo "the laws of test-report.py are not tried: no python3"; fi

step "docs"; RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
step "dependencies"
if ! command -v cargo-deny >/dev/null; then echo "SKIPPED: dependencies are not checked, cargo-deny is not installed"; exit 0; fi
deny() { for workspace in . ring; do cargo deny --log-level error --manifest-path $workspace/Cargo.toml --config deny.toml check "$@" || return; done; }
deny licenses bans sources
# The advisory database is outside the package registry; if it cannot be reached, that is reported.
deny advisories || {
  [[ -d ~/.cargo/advisory-dbs ]] && compgen -G "$HOME/.cargo/advisory-dbs/*/crates" >/dev/null && exit 1
  echo "advisories not checked: the advisory database cannot be reached from here"
}
