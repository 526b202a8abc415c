#!/usr/bin/env bash
# The main use of throng, in small: how many viewers can one worker of the stage serve, and what limits it?
set -euo pipefail
throng=${1:?usage: scripts/demo.sh PATH-OF-THRONG}
run=${2:-runs/demo-$(date +%Y%m%d-%H%M%S)}

log=$(mktemp) answer=$(mktemp)
# The worker has extra work for each packet, so that it is full before this machine is.
"$throng" stage --listen 127.0.0.1:0 --workers 1 --work-per-packet 500 >"$log" &
stage=$!
trap 'kill $stage 2>/dev/null || true; wait $stage 2>/dev/null || true; rm -f "$log" "$answer"' EXIT

for _ in $(seq 100); do
  url=$(sed -n 's/^ *watch *//p' "$log")
  [[ -n $url ]] && break
  kill -0 $stage 2>/dev/null || { cat "$log" >&2; echo "the stage did not start" >&2; exit 4; }
  sleep 0.1
done

echo "The stage plays 1 Mbit/s to each viewer, with one worker. How many, and why not more? Less than three minutes."
status=0
# On this host a second is enough time to join.
"$throng" find "whep+$url" --budget 75s --start 8 --ceiling 300 --objective "connect p99 < 1s" \
  --watch "pid=$stage" --plain --output "$run" | tee "$answer" || status=$?

cause=$(sed -n 's/^ *cause  *//p' "$answer" | head -1)
case $status in
  0)
    if [[ $cause == *stage-worker*" is full"* ]]; then
      echo "It broke, as it should: its one worker is full, and the report says what to change."
    else
      echo "It broke, but not by the one worker that was given too much to do. What was found: ${cause:-no cause}"
    fi
    ;;
  4) echo "This machine was too busy for a verdict, the line 'cause' says with what; repeat it with nothing else running." ;;
  *) exit "$status" ;;
esac
echo "The report: $run/report.html"
