#!/usr/bin/env bash
# The CPU time of a join by throng and by pion on Janus, LiveKit, an OME-like and an SRS-like
# server, as a table, written into docs/measurements/joins.md: about six minutes after the build.
# Needs root for network namespaces, two CPUs, janus, Go for the viewer that throng is compared
# with, and livekit-server (scripts/livekit.sh builds it once). Arguments go to the benchmark, such
# as `--servers srs,ome --viewers 200 --repeat 4`; with any, docs/measurements/joins.md is not
# changed unless `--page` names it. The binaries go to CARGO_TARGET_DIR, if that is set.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $(id -u) -ne 0 ]]; then
  echo "bench/joins.sh needs root: server and viewers run in a network namespace of their own" >&2
  exit 2
fi

go=$(PATH=$PATH:/usr/local/go/bin command -v go || true)
[[ -n $go ]] || { echo "bench/joins.sh needs Go: without pion there is no ratio" >&2; exit 2; }

named="bench/joins.sh${*:+ $*}"
[[ $# -gt 0 ]] || set -- --page docs/measurements/joins.md
target=${CARGO_TARGET_DIR:-target}
cargo build --release --locked -p throng-cli -p throng-bench --bin throng --bin joins
scripts/livekit.sh || echo "LiveKit is left out." >&2

pion=$target/release/pion-viewer
[[ $pion == /* ]] || pion=$PWD/$pion
"$go" build -C bench/pion-viewer -o "$pion" .
PATH=$PATH:$(dirname "$go")

exec "$target/release/joins" --throng "$target/release/throng" --pion "$pion" --named "$named" "$@"
