#!/usr/bin/env bash
# The main use of throng, in small: how many viewers can one worker of the stage serve, and what
# limits it?
set -euo pipefail
throng=${1:?usage: scripts/demo.sh PATH-OF-THRONG}
run=${2:-runs/demo-$(date +%Y%m%d-%H%M%S)}

log=$(mktemp) said=$(mktemp)
# The worker has extra work for each packet, so that it is full before this machine is.
"$throng" stage --listen 127.0.0.1:0 --workers 1 --work-per-packet 500 >"$log" &
stage=$!
trap 'kill $stage 2>/dev/null || true; wait $stage 2>/dev/null || true; rm -f "$log" "$said"' EXIT

for _ in $(seq 100); do
  url=$(sed -n 's/^ *watch *//p' "$log")
  [[ -n $url ]] && break
  kill -0 $stage 2>/dev/null || { cat "$log" >&2; echo "the stage did not start" >&2; exit 4; }
  sleep 0.1
done

echo "The stage plays 1 Mbit/s to each viewer, with one worker. How many, and why not more? About three minutes."
status=0
# On this host a second is enough time to join. The last line is the answer.
"$throng" find "whep+$url" --budget 150s --start 12 --ceiling 300 --objective "connect p99 < 1s" \
  --watch "pid=$stage" --plain --output "$run" | tee "$said" || status=$?

[[ $status -ne 4 ]] ||
  echo "This machine was too busy for a verdict, the line 'cause' says with what; repeat it with nothing else running."
if [[ $status -eq 0 ]] && ! grep -q '^ *cause .*stage-worker.* is full' "$said"; then
  echo "The worker that was given too much to do was not found to be the cause: a defect of throng, or a busy machine."
fi
[[ $status -eq 0 || $status -eq 4 ]] || exit "$status"
