#!/usr/bin/env bash
# What a fleet plays and costs (docs/measurements/fleet.md), on one machine, in three parts:
#   answers      `throng find` alone and on two workers, against a stage that serves a known number
#                of viewers well
#   quotas       how many viewers one worker with a quarter of a core plays before it is its own
#                limit, and four such workers
#   coordinator  the rows of 200 workers with 1,000 viewers each, merged as a coordinator does
#   bench/fleet.sh [answers|quotas|coordinator]…        all
# Needs root (control groups) and nats-server. About twenty minutes after the build. BUDGET is the
# time of each search (240s). THRONG and FLEET_MERGE name other binaries than those of the release
# build.
set -euo pipefail
cd "$(dirname "$0")/.."
parts=${*:-answers quotas coordinator}
target=${CARGO_TARGET_DIR:-target}
if [[ -z ${THRONG:-} || -z ${FLEET_MERGE:-} ]]; then
  cargo build -q --release --locked -p throng-cli -p throng-bench --bin throng --bin fleet_merge
fi
throng=$(realpath "${THRONG:-$target/release/throng}") \
  merge=$(realpath "${FLEET_MERGE:-$target/release/fleet_merge}")

folder=$(mktemp -d)
groups=()
finish() {
  jobs -p | xargs -r kill 2>/dev/null || true
  wait
  for group in "${groups[@]}"; do rmdir "$group" || true; done
  rm -rf "$folder"
}
trap finish EXIT
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
listens() {
  for _ in $(seq 100); do
    (echo >"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return; sleep 0.1
  done; echo "nothing listens on $1" >&2; exit 1
}

bus=$(free_port) stage=$(free_port)
nats-server --jetstream --store_dir "$folder/bus" --addr 127.0.0.1 --port "$bus" \
  >"$folder/bus.log" 2>&1 &
listens "$bus"

# A control group with a quarter of a core; prints where its processes are written.
quarter() { # NAME
  local group
  if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    group=/sys/fs/cgroup/throng-$$-$1
    mkdir "$group" && echo "25000 100000" >"$group/cpu.max"
  else
    group=/sys/fs/cgroup/cpu/throng-$$-$1
    mkdir "$group" && echo 25000 >"$group/cpu.cfs_quota_us"
  fi
  groups+=("$group")
}
# The largest load that passed in a search, whatever ended it.
find_limit() { # NAME ARGUMENTS…
  local name=$1; shift
  "$throng" find "whep+http://127.0.0.1:$stage/whep" --budget "${BUDGET:-240s}" --quiet \
    -o "$folder/$name" "$@" >"$folder/$name.log" 2>&1 || true
  [[ -e $folder/$name/summary.json ]] || { cat "$folder/$name.log" >&2; exit 1; }
  python3 - "$folder/$name/summary.json" "$name" <<'PY'
import json, sys
capacity = json.load(open(sys.argv[1]))["capacity"]
passing = [goal["passing"] for goal in capacity["goals"] if goal["goal"] == capacity["goal"]]
print(f"{sys.argv[2]:24} passed at most {passing}: {capacity['statement']}")
PY
}

# Whether so many workers play so many viewers without being the limit. Each worker gets 25 joins a
# second.
plays() { # WORKERS VIEWERS
  local run="$folder/run-$1-$2"
  "$throng" view "whep+http://127.0.0.1:$stage/whep" -n "$2" --every "$((40 / $1))ms" \
    --for "$(($2 / (25 * $1) + 15))s" --quiet -o "$run" \
    --fleet "nats://127.0.0.1:$bus" --workers "$1" >"$run.log" 2>&1 || true
  python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["generator"]["limited"])' \
    "$run/summary.json"
}
# The most viewers that they play, to within 3 %: in `found`.
most() { # WORKERS LOW HIGH
  local low=$2 high=$3 middle
  while ((high - low > low / 32)); do
    middle=$(((low + high) / 2))
    if plays "$1" $middle; then low=$middle; else high=$middle; fi
    echo "$1 workers: $low viewers and more, fewer than $high"
  done
  found=$low
}

for part in $parts; do
  case $part in
    answers)
      "$throng" stage --listen "127.0.0.1:$stage" --card low --stutters-beyond 40 \
        >"$folder/stage.log" 2>&1 & server=$!
      listens "$stage"
      find_limit alone
      for name in a b; do
        "$throng" worker --fleet "nats://127.0.0.1:$bus" --name $name --once \
          >"$folder/$name.log" 2>&1 &
      done
      find_limit two-workers --fleet "nats://127.0.0.1:$bus" --workers 2
      kill $server; wait $server || true ;;
    quotas)
      "$throng" stage --listen "127.0.0.1:$stage" --card low >"$folder/stage.log" 2>&1 & server=$!
      listens "$stage"
      for number in 0 1 2 3; do
        quarter "$number"
        (echo $BASHPID >"${groups[-1]}/cgroup.procs"
          exec "$throng" worker --fleet "nats://127.0.0.1:$bus" --name "w$number" --weight 1 \
            --threads 1) >"$folder/w$number.log" 2>&1 &
      done
      most 1 50 450; one=$found
      most 4 "$((one * 2))" "$((one * 5))"
      echo "four workers play $found, $(python3 -c "print(f'{$found / (4 * $one):.2f}')") of four times $one"
      kill $server; wait $server || true ;;
    coordinator) "$merge" ;;
    *) echo "unknown part $part: answers, quotas, coordinator" >&2; exit 2 ;;
  esac
done
