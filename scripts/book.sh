#!/usr/bin/env bash
# Makes a book of the documentation, with search: target/book/html/index.html. Each of its links is
# checked.
#   scripts/book.sh
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh
scripts/setup.sh book
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin

book=${CARGO_TARGET_DIR:-target}/book
rm -rf "$book"
mkdir -p "$book"
cp docs/book.toml "$book/"
step "pages" scripts/book.py pages "$book/src"
step "book" mdbook build "$book"
step "links" scripts/book.py links "$book/html"
echo "$book/html/index.html"
