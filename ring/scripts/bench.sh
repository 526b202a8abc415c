#!/usr/bin/env bash
# Cost of the ring, as a table: CPU-seconds per GB of both processes against one memcpy of the same
# run, CPU per message, wake-up round trip, fairness. Needs an otherwise idle machine. Arguments:
# [--gb 4] [--repeat 3].
set -euo pipefail
cd "$(dirname "$0")/.."

exec cargo bench -p throng-ring --locked --bench ring -- "$@"
