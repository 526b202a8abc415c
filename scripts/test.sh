#!/usr/bin/env bash
# The checks of every landing: laws, hostile input, the end-to-end tests against real servers, planted limits that
# throng must find (lab/), the ring (ring/test.sh). 15 minutes on 2 cores; longer checks are in `make proof`.
# .config/nextest.toml sets which tests run in parallel; scripts/test-report.py explains what tests print.
# cargo-nextest writes its reports below the root of each workspace, whatever CARGO_TARGET_DIR is.
set -uo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
pool() { cargo nextest run --workspace --locked "$@"; }
ring() { CARGO_TARGET_DIR=$target ring/test.sh "$@"; }
ticks() { awk '/^cpu / { print $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9, $9 }' /proc/stat; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Built before the clock of the budget starts: the build time is reported separately.
built=$(date +%s)
pool --no-run || exit 1
ring build || exit 1
echo "built in $(($(date +%s) - built)) s"

status=0
began=$(date +%s) before=$(ticks)
from=$(date +%s.%N)
rm -f ring/target/nextest/default/ring.xml
ring 2>&1 | tee "$work/said" || status=1
echo "$(awk "BEGIN { print $(date +%s.%N) - $from }") ring/test.sh" >"$work/more"

rm -f target/nextest/{default,again}/junit.xml
pool
case $? in 0 | 100) ;; *) exit 1 ;; esac
report=(scripts/test-report.py target/nextest/default/junit.xml)
# Failed tests of the ring are not repeated: nothing ran in parallel with them.
"${report[@]}" --again-to "$work/again"
report+=(ring/target/nextest/default/ring.xml)
if [[ -s $work/again ]]; then
  echo "AGAIN, what failed or was not tested, one by one:"
  pool --profile again -E "$(cat "$work/again")"
  report+=(--again target/nextest/again/junit.xml)
fi
wall=$(($(date +%s) - began))
stolen=$(awk -v before="$before" -v after="$(ticks)" 'BEGIN {
  split(before, b); split(after, a); print (a[2] - b[2]) / (a[1] - b[1]) }')
"${report[@]}" --more "$work/more" --said "$work/said" --wall $wall --stolen "$stolen" || status=1
exit $status
