#!/usr/bin/env bash
# Everything: laws, hostile input, the end-to-end tests against real servers, and limits that are planted and whether
# throng finds them (lab/). Under 30 minutes on 2 cores.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $(id -u) -ne 0 ]]; then
  echo "Tests that need network namespaces are skipped without root; each says so."
fi
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
scripts/cargo-test.sh --workspace --locked
scripts/ring-python.sh
scripts/ring-loom.sh
scripts/ring-gstreamer.sh
