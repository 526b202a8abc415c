#!/usr/bin/env bash
# What `--otlp` sends, given to a real OpenTelemetry Collector on loopback, which
# scripts/otel-collector.sh builds once, with the configuration of deploy/opentelemetry: that of
# twenty viewers of the stage, of which it refuses two. scripts/collector_received.py judges it.
#   scripts/collector_proof.sh [PATH-OF-THRONG]
set -euo pipefail
cd "$(dirname "$0")/.."
throng=$(realpath -m "${1:-${CARGO_TARGET_DIR:-target}/release/throng}")
[[ -x $throng ]] || { echo "there is no $throng: make build" >&2; exit 1; }
scripts/otel-collector.sh
collector=${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin/otel-collector
traces_a_second=2

source scripts/background.sh
read -r otlp_port stage_port <<<"$(free_ports 2)"

# Ports and files of this proof in place of the usual ones.
cat >"$work/own.yml" <<YML
receivers: { otlp: { protocols: { http: { endpoint: "127.0.0.1:$otlp_port" } } } }
exporters: { file: { path: "$work/received.jsonl" } }
service: { telemetry: { metrics: { level: none } } }
YML
background collector "Everything is ready" \
  "$collector" --config "file:deploy/opentelemetry/collector.yml" --config "file:$work/own.yml"
collector_pid=${pids[-1]}
background stage '^ *watch' \
  "$throng" stage --listen "127.0.0.1:$stage_port" --card low --max-viewers 18

# A second has two or three joins, the last one the two that are refused.
status=0
"$throng" view "whep+http://127.0.0.1:$stage_port/whep" -n 20 --every 400ms --for 16s --plain \
  --watch "pid=${pids[-1]}" --otlp "http://127.0.0.1:$otlp_port" --otlp-traces $traces_a_second \
  --output "$work/run" >"$work/throng.log" 2>&1 || status=$?
# 1: some were not served; 4: the machine was too slow. What is sent is the same.
[[ $status =~ ^[014]$ ]] || { cat "$work/throng.log" >&2; exit 1; }
# It writes out what it has.
kill "$collector_pid"
wait "$collector_pid" || {
  cat "$work/collector.log" >&2
  echo "the collector did not end well" >&2
  keep_work
  exit 1
}
scripts/collector_received.py "$work" $traces_a_second && exit
keep_work
exit 1
