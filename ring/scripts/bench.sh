#!/usr/bin/env bash
# What the ring costs, as a table: CPU-seconds per GB of both processes beside one memcpy of the same run, CPU per
# message, wake-up round trip, fairness. On a machine that does nothing else. Arguments: [--gb 4] [--repeat 3].
set -euo pipefail
cd "$(dirname "$0")/.."

exec cargo bench -p throng-ring --locked --bench ring -- "$@"
