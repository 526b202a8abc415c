#!/usr/bin/env bash
# The main job, small: the embedded server on a 40 Mbit/s line, one more viewer every half second, until it breaks.
set -euo pipefail
throng=${1:?usage: scripts/demo.sh PATH-OF-THRONG}
run=${2:-runs/demo-$(date +%Y%m%d-%H%M%S)}

log=$(mktemp)
"$throng" stage --listen 127.0.0.1:0 --egress-cap 40Mbit/s >"$log" &
stage=$!
trap 'kill $stage 2>/dev/null || true; wait $stage 2>/dev/null || true; rm -f "$log"' EXIT

for _ in $(seq 100); do
  url=$(sed -n 's/^ *watch *//p' "$log")
  [[ -n $url ]] && break
  kill -0 $stage 2>/dev/null || { cat "$log" >&2; echo "the stage did not start" >&2; exit 4; }
  sleep 0.1
done

echo "The stage plays 1 Mbit/s on a line of 40 Mbit/s. One more viewer every 0.5 s, until an objective is missed or 60 s are over."
status=0
"$throng" view "whep+$url" -n 100 --every 500ms --for 60s --summary 5s --warm-up 3s --until-missed --plain \
  --objective "video.loss < 1%" --objective "video.delay p95 < 400ms" --objective "connect p99 < 3s" \
  --output "$run" || status=$?

case $status in
  0) echo "Nothing broke within 60 s." ;;
  1) echo "It broke, as it should: the line is full." ;;
  *) exit "$status" ;;
esac
echo "The report: $run/report.html"
