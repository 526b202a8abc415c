#!/usr/bin/env bash
# What must hold at every landing: laws, hostile input, the end-to-end tests against real servers, limits that are planted
# and whether throng finds them (lab/), the ring's bindings and model. 15 minutes on 2 cores; what takes longer is in
# `make proof`. Who runs beside whom stands in .config/nextest.toml; what a test says of itself, in scripts/test-report.py.
set -uo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
pool() { cargo nextest run --workspace --locked "$@"; }
ticks() { awk '/^cpu / { print $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9, $9 }' /proc/stat; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Built before the clock of the budget begins: how long that takes is another matter, and is told apart.
built=$(date +%s)
pool --no-run || exit 1
for script in ring-python ring-loom ring-gstreamer; do scripts/$script.sh build || exit 1; done
echo "built in $(($(date +%s) - built)) s"

status=0
began=$(date +%s) before=$(ticks)
for script in ring-python ring-loom ring-gstreamer; do
  from=$(date +%s.%N)
  scripts/$script.sh 2>&1 | tee -a "$work/said" || { echo "FAILED: scripts/$script.sh" | tee -a "$work/said"; status=1; }
  echo "$(awk "BEGIN { print $(date +%s.%N) - $from }") scripts/$script.sh" >>"$work/more"
done

rm -f "$target"/nextest/{default,again}/junit.xml
pool
case $? in 0 | 100) ;; *) exit 1 ;; esac
report=(scripts/test-report.py "$target/nextest/default/junit.xml")
"${report[@]}" --failed-to "$work/failed"
if [[ -s $work/failed ]]; then
  echo "AGAIN, what failed, one by one:"
  pool --profile again -E "$(cat "$work/failed")"
  report+=(--again "$target/nextest/again/junit.xml")
fi
wall=$(($(date +%s) - began))
stolen=$(awk -v before="$before" -v after="$(ticks)" 'BEGIN {
  split(before, b); split(after, a); print (a[2] - b[2]) / (a[1] - b[1]) }')
"${report[@]}" --more "$work/more" --said "$work/said" --wall $wall --stolen "$stolen" || status=1
exit $status
