#!/usr/bin/env bash
# Everything: laws, hostile input, and the end-to-end tests against real servers. Under 30 minutes on 2 cores.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $(id -u) -ne 0 ]]; then
  echo "Tests that need network namespaces are skipped without root; each says so."
fi
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
cargo test --workspace --locked
# Limits that are planted, and whether throng finds them: the few that need no other server.
cargo run --locked -p throng-lab -- --short --throng "${CARGO_TARGET_DIR:-target}/debug/throng"
scripts/ring-python.sh
scripts/ring-loom.sh
scripts/ring-gstreamer.sh
