#!/usr/bin/env bash
# Checks that need no run: formatting, lints, documentation, dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh

report_laws() {
  if command -v python3 >/dev/null; then
    scripts/test-report-laws.py
  else
    echo "the laws of test-report.py are not tried: no python3"
  fi
}
scripts_in_python() {
  command -v python3 >/dev/null || {
    echo "SKIPPED: scripts in Python are not tried: no python3"; return
  }
  local script
  for script in scripts/{book,third_party}.py; do python3 -B -m doctest "$script" || return; done
}
docs() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet; }
deny() {
  for workspace in . ring; do
    cargo deny --log-level error --manifest-path $workspace/Cargo.toml \
      --config deny.toml check "$@" || return
  done
}
dependencies() {
  if ! command -v cargo-deny >/dev/null; then
    echo "SKIPPED: dependencies are not checked, cargo-deny is not installed"; return
  fi
  deny licenses bans sources || return
  # The advisory database is outside the package registry; if it cannot be reached, that is
  # reported.
  deny advisories || {
    [[ -d ~/.cargo/advisory-dbs ]] && compgen -G "$HOME/.cargo/advisory-dbs/*/crates" >/dev/null &&
      return 1
    echo "advisories not checked: the advisory database cannot be reached from here"
  }
}

# A rule that is written anew leaves its mutation behind.
mutations() {
  local patch status=0
  for patch in scripts/mutations/*.patch; do
    git apply --check "$patch" || { echo "$patch does not apply: adapt it"; status=1; }
  done
  return $status
}

step "formatting" cargo fmt --all --check
step "mutations" mutations
step "clippy" cargo clippy --workspace --all-targets --locked -- -D warnings
step "docs" docs
step "formatting, clippy and docs of the ring" env CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}" \
  ring/scripts/lint.sh
step "laws of the test report" report_laws
step "examples in scripts" scripts_in_python
step "dependencies" dependencies
