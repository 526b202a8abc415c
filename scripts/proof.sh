#!/usr/bin/env bash
# The checks that take too long for every landing, one after another; docs/testing.md says when to run which and
# their times.
#   scripts/proof.sh [long|miri|sanitizers|ring|soak|kubernetes|lab]...      all of them unless named
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin

# Tests that `make test` leaves out: docs/testing.md says what else covers them.
long() { cargo nextest run --workspace --locked --run-ignored only -E 'test(/(^|::)long::/)'; }
miri() { ring/scripts/miri.sh; }
sanitizers() { ring/scripts/sanitizers.sh; }
ring() { ring/scripts/proof.sh; }
soak() { ring/scripts/soak.sh; }
kubernetes() { make build && scripts/kubernetes_proof.sh; }
lab() { make lab; }

for step in "${@:-long miri sanitizers ring soak kubernetes lab}"; do
  for one in $step; do
    printf '\n== %s\n' "$one"
    SECONDS=0
    "$one"
    echo "== $one took $SECONDS s"
  done
done
