#!/usr/bin/env bash
# What it costs to look at a run while it happens, and at many runs (docs/measurements/live.md), in
# three parts:
#   run    1,000 viewers of the stage while a server of 2,000 threads is watched: without the flags,
#          with --serve and --prometheus that nobody asks, scraped each second, and with a Chromium
#          on the page; in turn
#   list   `throng serve` over 1,000 run folders: from its start to the list
#   day    the page of eight hours of rows: made, loaded, and zoomed in Chromium
#   bench/live.sh [--quick] [--only PART,PART] [--rounds N]
# Without arguments the table is written into docs/measurements/live.md: about twenty minutes after
# the build. --quick is a tenth of each, about three minutes: it shows that all works, no figures.
# BEFORE names a throng of an earlier version, which plays the same without the flags. Needs two
# CPUs, chromium and Debian's python3-websockets. THRONG, WATCH and WATCHED_RUN name other binaries
# than those of the release build.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
if [[ -z ${THRONG:-} || -z ${WATCH:-} || -z ${WATCHED_RUN:-} ]]; then
  cargo build -q --release --locked -p throng-cli -p throng-bench \
    --bin throng --bin watch --bin watched_run
fi
named="bench/live.sh${*:+ $*}"
[[ $# -gt 0 ]] || set -- --page docs/measurements/live.md
command -v chromium >/dev/null && /usr/bin/python3 -c 'import websockets' \
  || { echo "chromium or python3-websockets is missing: see the beginning of $0" >&2; exit 1; }
ulimit -n "$(ulimit -Hn)"

exec /usr/bin/python3 bench/live/measure.py --named "$named" ${BEFORE:+--before "$BEFORE"} \
  --throng "${THRONG:-$target/release/throng}" --watch "${WATCH:-$target/release/watch}" \
  --watched-run "${WATCHED_RUN:-$target/release/watched_run}" "$@"
