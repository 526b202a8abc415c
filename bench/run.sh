#!/usr/bin/env bash
# Builds everything that is compared and writes docs/measurements/webrtc-viewers.md. Arguments go to
# `compare`, such as --viewers 100. Without any: the comparison, the profile, and crowds on throng's
# own stage. Needs root for network namespaces.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $(id -u) -ne 0 ]]; then
  echo "bench/run.sh needs root: server and viewers run in a network namespace of their own" >&2
  exit 2
fi

named="bench/run.sh${*:+ $*}"
[[ $# -gt 0 ]] || set -- --profile --stage-compare 300,900 --stage-viewers 1000,2500
target=${CARGO_TARGET_DIR:-target}
cargo build --release --locked -p throng-cli -p throng-bench
programs=(--throng "$target/release/throng")

go=$(PATH=$PATH:/usr/local/go/bin command -v go || true)
if [[ -n $go ]]; then
  pion=$target/release/pion-viewer
  [[ $pion == /* ]] || pion=$PWD/$pion
  "$go" build -C bench/pion-viewer -o "$pion" .
  programs+=(--pion "$pion")
  PATH=$PATH:$(dirname "$go")
else
  echo "There is no Go, so pion is left out and no ratio to it can be given." >&2
fi

exec "$target/release/compare" "${programs[@]}" --named "$named" "$@"
