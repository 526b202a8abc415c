# Sourced by proofs that start servers: what they start ends with them, and their folder goes.
#   $work                             the folder; it is kept, and named, after `keep_work`
#   background NAME READY COMMAND...  starts COMMAND and waits until its output, the file
#                                     $work/NAME.log, has READY; its PID is then ${pids[-1]}
#   free_ports N                      prints N ports of 127.0.0.1 that nobody has
work=$(mktemp -d)
pids=() is_kept=false

keep_work() {
  is_kept=true
  echo "what was written: $work" >&2
}

finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  $is_kept || rm -rf "$work"
}
trap finish EXIT

background() {
  local log=$work/$1.log ready=$2
  shift 2
  "$@" >"$log" 2>&1 &
  pids+=($!)
  for _ in $(seq 100); do
    grep -q "$ready" "$log" && return
    sleep 0.1
  done
  echo "$log has no '$ready':" >&2
  cat "$log" >&2
  exit 1
}

free_ports() {
  python3 -c '
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))' "$1"
}
