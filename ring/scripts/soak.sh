#!/usr/bin/env bash
# The ring for ten minutes (or SECONDS): three processes with two threads each send frames of all
# sizes up to 3 MB, every byte, every sequence number and every counter is checked. Arguments:
# [SECONDS].
set -euo pipefail
cd "$(dirname "$0")/.."

THRONG_RING_SOAK_S=${1:-600} exec cargo test -p throng-ring --locked --test processes -- soak
