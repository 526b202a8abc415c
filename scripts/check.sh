#!/usr/bin/env bash
# The inner loop: what must hold before anything else is worth running.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step "formatting"; cargo fmt --all --check
step "lints"; cargo clippy --workspace --all-targets --locked -- -D warnings
step "unit tests"; cargo test --workspace --lib --bins --locked --quiet
step "docs"; RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
step "dependencies"
if ! command -v cargo-deny >/dev/null; then
  echo "installing cargo-deny"
  cargo install cargo-deny --locked --quiet
fi
cargo deny --log-level error check licenses bans sources
# The advisory database lives outside the package registry; where it cannot be reached that is said, not hidden.
cargo deny --log-level error check advisories || {
  [[ -d ~/.cargo/advisory-dbs ]] && compgen -G "$HOME/.cargo/advisory-dbs/*/crates" >/dev/null && exit 1
  echo "advisories not checked: the advisory database cannot be reached from here"
}
