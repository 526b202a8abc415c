#!/usr/bin/env bash
# The main use of throng, in small: how many viewers can one worker of the stage serve, and what
# limits it?
set -euo pipefail
throng=${1:?usage: scripts/demo.sh PATH-OF-THRONG}
run=${2:-runs/demo-$(date +%Y%m%d-%H%M%S)}

log=$(mktemp) said=$(mktemp) price=$(mktemp)
# The worker has extra work for each packet, so that it is full before this machine is.
"$throng" stage --listen 127.0.0.1:0 --workers 1 --work-per-packet 500 >"$log" &
stage=$!
trap 'kill $stage 2>/dev/null || true; wait $stage 2>/dev/null || true; rm -f "$log" "$said" "$price"' EXIT

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

# What more workers would give, by the answer, must not need more cores by the price of the same run
# than this host has.
predicted=$(awk '/"bottleneck": [{]/ { is_in = 1 }
  is_in && /"prediction": null/ { exit }
  is_in && /"prediction": [{]/ { is_it = 1 }
  is_it && $1 == "\"users\":" { print int($2); exit }' "$run/summary.json")
[[ ${predicted:-0} -gt 0 ]] || exit 0
grep -q '^ *cause .*stage-worker.* is full' "$said" || exit 0
"$throng" price "$run" --viewers "$predicted" --target-utilisation 1 --json >"$price" || [[ $? -eq 4 ]]
# The number of KEY in a JSON file of a key a line, behind the resource of that name.
number() {
  awk -v resource="\"$1\"" -v key="\"$2\":" '$1 == "\"resource\":" { is_in = index($2, resource) }
    is_in && $1 == key && $2 !~ /null/ { print $2 + 0; exit }' "$3"
}
need=$(number cpu value "$price") limit=$(number host_cpu limit "$run/summary.json")
[[ -n $need && -n $limit ]] || exit 0
if awk -v need="$need" -v limit="$limit" 'BEGIN { exit !(need > 1.02 * limit) }'; then
  echo "The answer contradicts its own price: $predicted viewers would need $need of $limit cores, a defect of throng." >&2
  exit 1
fi
echo "By throng price $predicted viewers, which the answer expects of more workers, need $need of the $limit cores."
