#!/usr/bin/env bash
# The ring's proofs in full, for an otherwise idle machine: producers killed at every single
# instruction rather than each third, and at random with no gap above 100 ms allowed; a minute of
# malicious ones. scripts/soak.sh is the soak.
set -euo pipefail
cd "$(dirname "$0")/.."

export THRONG_RING_STRIDE=1 THRONG_RING_STRICT=1 THRONG_RING_HOSTILE_S=60
for scene in killed hostile; do
  cargo test -p throng-ring --locked --test processes -- "$scene"
done
