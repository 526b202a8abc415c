#!/usr/bin/env bash
# The cost of conferences on a real Janus, as tables with the goals, written into
# docs/measurements/conferences.md: about four minutes after the build. Needs root for a network
# namespace, and Go for the publisher that throng is compared with. Arguments go to the benchmark,
# such as --publishers 30; with any, docs/measurements/conferences.md is not changed.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $(id -u) -ne 0 ]]; then
  echo "bench/conference.sh needs root: server and participants run in a network namespace of their own" >&2
  exit 2
fi

[[ $# -gt 0 ]] || set -- --page docs/measurements/conferences.md
target=${CARGO_TARGET_DIR:-target}
cargo build --release --locked -p throng-cli -p throng-bench --bin throng --bin conference

go=$(PATH=$PATH:/usr/local/go/bin command -v go || true)
if [[ -n $go ]]; then
  pion=$target/release/pion-publisher
  [[ $pion == /* ]] || pion=$PWD/$pion
  "$go" build -C bench/pion-publisher -o "$pion" .
  set -- --pion "$pion" "$@"
  PATH=$PATH:$(dirname "$go")
else
  echo "There is no Go, so pion is left out and no ratio to it can be given." >&2
fi

exec "$target/release/conference" --throng "$target/release/throng" "$@"
