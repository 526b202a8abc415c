# Sourced by the scripts that CI runs. Names each step and, at the end, says where the time went.
#   step NAME COMMAND...   runs COMMAND; its time, and the CPU time of the whole machine meanwhile,
#                          are a row of the table
# A COMMAND that lacks what it needs ends with 77, as of automake's tests: no failure, and the row
# says that it was skipped. The outermost script prints the table when it ends; scripts that it
# calls add their rows to it.

if [[ -z ${THRONG_STEPS:-} ]]; then
  THRONG_STEPS=$(mktemp)
  export THRONG_STEPS
  at_end() { steps_table; rm -f "$THRONG_STEPS"; }
else
  at_end() { :; }
fi
trap at_end EXIT

# Clock, CPU time in use and CPU time that a hypervisor took, of all cores, in ticks of a hundredth
# of a second.
machine_time() {
  awk '/^cpu / { print systime_cs, $2 + $3 + $4 + $7 + $8, $9 }' \
    systime_cs="$(date +%s%N | cut -c1-12)" /proc/stat
}

SKIPPED=77

# Runs each command, also after one that was skipped; ends as the first that failed, else as one
# that was skipped.
each() {
  local command status=0 code
  for command; do
    code=0
    $command || code=$?
    case $code in
    0) ;;
    "$SKIPPED") status=$SKIPPED ;;
    *) return "$code" ;;
    esac
  done
  return $status
}

step() {
  local name=$1 before status=0
  shift
  printf '\n== %s\n' "$name"
  before=$(machine_time)
  "$@" || status=$?
  if [[ $status -eq $SKIPPED ]]; then
    name+=" (skipped, or a part of it)"
    status=0
  fi
  printf '%s %s\n' "$(machine_use "$before" "$(machine_time)")" "$name" >>"$THRONG_STEPS"
  return $status
}

# Between two of these: wall seconds, and which share of all cores was in use and which the
# hypervisor took.
machine_use() { # BEFORE AFTER
  awk -v cores="$(nproc)" -v times="$1 $2" 'BEGIN {
    split(times, t); wall = t[4] - t[1]; all = wall > 0 ? wall * cores : 1
    printf "%.1f %.3f %.3f\n", wall / 100, (t[5] - t[2]) / all, (t[6] - t[3]) / all }'
}

steps_table() {
  [[ -s $THRONG_STEPS ]] || return 0
  awk -v cores="$(nproc)" '
    BEGIN { printf "\n%8s %6s %7s  %s\n", "seconds", "busy", "stolen", "step (busy, stolen: share of " cores " cores)" }
    {
      total += $1
      line = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ /, "", line)
      if ($1 < 0.1 && line !~ /[(]skipped/) next # There was nothing to do.
      printf "%8.1f %5.0f%% %6.1f%%  %s\n", $1, 100 * $2, 100 * $3, line
    }
    END { printf "%8.1f                 all steps\n", total }' "$THRONG_STEPS"
}
