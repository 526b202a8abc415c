#!/usr/bin/env bash
# Kills throng in each phase of run, find, matrix, prove and both sides of a fleet, on loopback
# against the stage. Then the folder must be readable, nothing that throng started may live, and the
# machine must be as before; what SIGKILL left changed must be told by the next experiment and put
# back by --undo. Prints a table; ends with 1 if anything is wrong, else with 77 if a case was
# skipped.
#   scripts/kills.sh [CASE]...   COMMAND[/PHASE[/SIGNAL]], or a pattern of it such as '*/*/KILL';
#                                all unless named
#   THRONG   the program; target/release/throng unless set
# As root, in namespaces of its own (network, mounts). No other throng may run on this host
# meanwhile: its control groups would be taken for what a case left. What a case that failed has
# written is kept, and named at the end.
set -uo pipefail
fail() { echo "$*" >&2; exit 1; }
[[ $(id -u) -eq 0 ]] || fail "scripts/kills.sh makes namespaces and mounts: run it as root"
[[ -n ${THRONG_KILLS_APART:-} ]] || exec env THRONG_KILLS_APART=1 unshare --net --mount "$0" "$@"
[[ -z ${THRONG:-} ]] || THRONG=$(realpath -m "$THRONG") # It is relative to where the caller is.
cd "$(dirname "$0")/.." || exit
PATH=$PATH:/usr/sbin:/sbin
throng=$(realpath -m "${THRONG:-${CARGO_TARGET_DIR:-target}/release/throng}")
[[ -x $throng ]] || fail "there is no $throng: make build"
ip link set lo up || exit
[[ $# -gt 0 ]] || set -- '*'
stage=whep+http://127.0.0.1:7080/whep server_port=7081 free_port=7082 bus=nats://127.0.0.1:4222 \
  viewers=6
work=$(mktemp -d)
export XDG_STATE_HOME=$work/state # The list of experiments that are not finished.
helpers=() failed=0 tried=0 skipped=0 lacking=none

# By a variable that all inherit which a process starts.
marked() { grep -lsz "^THRONG_KILLS=$1\$" /proc/[0-9]*/environ | cut -d/ -f3; }
has_none() { [[ -z $(marked "$1") ]]; }
has_ended() { [[ ! -d /proc/$1 ]] || grep -qs '^State:.Z' "/proc/$1/status"; }
is_started() { [[ /proc/$1/exe -ef $throng ]] || has_ended "$1"; }
within() { # SECONDS COMMAND...: until COMMAND succeeds
  local until=$((SECONDS + $1))
  until "${@:2}"; do
    [[ $SECONDS -lt $until ]] || return 1
    sleep 0.02
  done
}
clean_up() {
  marked "$$-.*" | xargs -r kill -KILL
  for one in "${helpers[@]}"; do kill "$one" && within 10 has_ended "$one"; done
  [[ $failed -ne 0 ]] || rm -rf --one-file-system "$work"
}
trap 'clean_up 2>/dev/null' EXIT
trap 'failed=1; exit 1' INT TERM HUP

helper() { # NAME READY COMMAND...: in the background, without a mark, until its output has READY
  "${@:3}" >"$work/$1.log" 2>&1 </dev/null &
  helpers+=($!) && disown $!
  within 10 grep -q "$2" "$work/$1.log" || fail "$1 did not start: $(<"$work/$1.log")"
}
start() { # MARK LOG ARGUMENT...: throng, with the signals that bash ignores in the background
  env --default-signal=INT,HUP,TERM THRONG_KILLS="$1" "$throng" "${@:3}" \
    >"$place/$2.log" 2>&1 </dev/null &
  started=$! && disown $!
  within 5 is_started "$started" || true # Until then bash or env has its signals.
}
peer() { start "$mark-peer" "$@" && peers+=("$started"); }
scenario() { # URL SIZE EVERY
  printf '[target]\nurl = "%s"\n[run]\nduration = "60s"\n[crowd]\nsize = %s\narrival = { every = "%s" }\n' "$@"
}
experiment() { # matrix|prove
  printf 'scenario = "viewers.toml"\nhold = "3s"\n'
  [[ $1 == matrix ]] || printf 'pairs = 2\nbusy_difference = 1\n'
  printf 'setup = [{ run = ["sh", "%s/up.sh"], undo = ["sh", "%s/down.sh"] }]\n' "$work" "$work"
  printf '[server]\nwatch = "none"\nready = { port = %s }\n' $server_port
  printf 'command = ["%s", "stage", "--listen", "127.0.0.1:%s"]\n' "$throng" $server_port
  if [[ $1 == matrix ]]; then
    printf '[[factor]]\nname = "viewers"\nset = "crowd.size"\nlevels = [2, 3]\n'
  else printf '[shrink]\nresource = "network"\nto = 0.5\ninterface = "lo"\nrate = "100Mbit/s"\n'; fi
}
begin() { # COMMAND: starts it; $victim is who is killed, $peers are the others of its fleet
  local run=(run "$place/viewers.toml" --output "$folder" --plain) \
    fleet=(--fleet "$bus" --workers 2 --fleet-wait 10s)
  mkdir "$place" "$place/mnt"
  scenario $stage $viewers 300ms >"$place/viewers.toml"
  case $1 in
    run) start "$mark" run "${run[@]}" ;;
    find)
      start "$mark" find find $stage --start $viewers --ceiling 9 --budget 1m --output "$folder" \
        --plain
      ;;
    matrix | prove)
      scenario ${stage/7080/$server_port} 2 50ms >"$place/viewers.toml"
      experiment "$1" >"$place/experiment.toml"
      start "$mark" "$1" "$1" "$place/experiment.toml" --output "$folder"
      ;;
    coordinator)
      for name in a b; do peer $name worker --fleet $bus --name $name; done
      start "$mark" run "${run[@]}" "${fleet[@]}"
      ;;
    worker)
      peer a worker --fleet $bus --name a
      peer run "${run[@]}" "${fleet[@]}" && coordinator=$started
      start "$mark" b worker --fleet $bus --name b
      ;;
  esac
  victim=$started
}
plays() { # COUNT: whether so many play in a second of a run below the folder
  python3 - "$1" "$folder" "$folder"/cells/*/* 2>/dev/null <<'END'
import os, sqlite3, sys
for run in filter(lambda run: os.path.exists(f"{run}/run.db"), sys.argv[2:]):
    rows = sqlite3.connect(f"file:{run}/run.db?mode=ro", uri=True).execute("SELECT max(playing) FROM crowd")
    if (rows.fetchone()[0] or 0) >= int(sys.argv[1]): sys.exit(0)
sys.exit(1)
END
}
is_reporting() { [[ -n $(find "$folder" -maxdepth 1 -name '*summary.json*') ]]; }
at() { # PHASE: waits for it
  case $1 in
    start) ;;
    joining) within 30 test -s "$folder/run.db" && sleep 0.5 ;;
    playing) within 60 plays $viewers ;;
    leaving) at playing && kill -TERM "$victim" && sleep 0.3 ;;
    report) at playing && kill -TERM "$victim" && within 30 is_reporting ;;
    setup) within 30 test -e "$place/setting" ;;
    server) within 30 compgen -G "$folder/cells/*/*/server/output.log" ;; # Between setup and run.
    measuring) within 60 plays 2 ;;
    undo) within 90 test -e "$place/undoing" ;;
  esac >/dev/null
}
wrong() { problems+=("$*"); }
machine() { # What an experiment could leave.
  tc qdisc show dev lo | grep -v '^qdisc noqueue'
  find /sys/fs/cgroup -maxdepth 2 -type d -name 'throng-*'
  ip netns list
  grep -s . /proc/sys/net/core/rmem_{default,max}
  grep '^kills ' /proc/mounts
}
look_at_machine() { # COMMAND SIGNAL
  local now
  now=$(machine)
  if [[ $2 == KILL && -e $folder/options.json ]]; then
    "$throng" matrix "$work/next/matrix.toml" --output "$place/next" >"$place/next.log" 2>&1
    if [[ $now != "$before" ]]; then
      machine_is="told, put back"
      grep -q 'left this machine changed' "$place/next.log" ||
        wrong "the next experiment tells nothing"
    fi
    "$throng" "$1" --undo "$folder" >"$place/undo.log" 2>&1 || wrong "--undo ended with $?"
    now=$(machine)
  fi
  [[ $now == "$before" ]] && return
  machine_is=changed
  wrong "the machine is not as before: $(diff <(echo "$before") <(echo "$now") | grep '^[<>]')"
}
look_at_folder() { # COMMAND PHASE
  local run said status expected='^(4|130)$'
  [[ $1 != matrix && $1 != prove ]] ||
    expected='^(0|1|4|130)$' # One of its runs may have ended before.
  for run in "$folder" "$folder"/cells/*/*; do
    [[ -e $run/run.db || -e $run/options.json ]] || continue
    said=$("$throng" report "$run" 2>&1); status=$?
    folder_is+="${folder_is:+, }exit $status"
    [[ $status =~ $expected && ! $said =~ not\ a\ run|damaged|panicked ]] ||
      wrong "throng report $run: $status, $said"
  done
  [[ -n $folder_is || $2 == start ]] || wrong "nothing is in the folder"
}
try() { # COMMAND PHASE SIGNAL
  local before left=none left_within=3 problems=() peers=() coordinator folder_is \
    machine_is="as before"
  mark=$$-$1-$2-$3 place=$work/$1-$2-$3 folder=$work/$1-$2-$3/out before=$(machine) coordinator='' \
    folder_is=''
  begin "$1"
  at "$2" || wrong "the phase was not reached"
  kill -s "$3" "$victim" 2>/dev/null || [[ $2 == leaving || $2 == report ]] ||
    wrong "it had ended before"
  within 40 has_ended "$victim" || wrong "it goes on after $3"
  [[ $3 != KILL ]] || left_within=20 # A step in progress runs to its end, a crowd leaves in order.
  within $left_within has_none "$mark" || left=$(marked "$mark" | paste -sd ,)
  [[ $left == none ]] || wrong "still there: $(ps -o pid=,args= -p "$left")"
  [[ -z $coordinator ]] || within 60 has_ended "$coordinator" ||
    wrong "the coordinator goes on without its worker"
  [[ ${#peers[@]} -eq 0 ]] || kill "${peers[@]}" 2>/dev/null
  within 30 has_none "$mark-peer" ||
    wrong "the others of the fleet go on: $(marked "$mark-peer" | paste -sd ,)"
  marked "$mark.*" | xargs -r kill -KILL
  look_at_machine "$1" "$3"
  look_at_folder "$1" "$2"
  ! grep -q panicked "$place"/*.log || wrong "a panic"
  ((tried += 1))
  printf '| %s | %s | %s | %s | %s | %s |\n' "$@" "${folder_is:-none}" "$left" "$machine_is"
  [[ ${#problems[@]} -gt 0 ]] || { rm -rf --one-file-system "$place" && return; }
  ((failed += 1))
  printf '  wrong: %s\n' "${problems[@]}"
  { umount "$place/mnt"; tc qdisc del dev lo root; } 2>/dev/null # For the next case.
}

echo 'touch setting; sleep 1; mount -t tmpfs kills mnt' >"$work/up.sh"
echo 'touch undoing; sleep 1; ! mountpoint -q mnt || umount mnt' \
  >"$work/down.sh" # It may not have come to the mount.
mkdir "$work/next" # An experiment that ends at once.
scenario ${stage/7080/$free_port} 1 50ms >"$work/next/viewers.toml"
experiment matrix |
  sed "/^setup/d; s/^comm.*/command = ['false']/; s/$server_port/$free_port/" \
  >"$work/next/matrix.toml"
helper stage '^ *watch' "$throng" stage --listen 127.0.0.1:7080
helper nats 'Server is ready' nats-server --addr 127.0.0.1 --port 4222 --jetstream \
  --store_dir "$work/bus"
commands=(run find matrix prove coordinator worker)
if tc qdisc add dev lo root tbf rate 100mbit burst 80000b latency 200ms 2>/dev/null; then
  tc qdisc del dev lo root
else
  lacking=prove
fi
printf '| Command | Phase | Signal | Folder | Processes left | Machine |\n|---|---|---|---|---|---|\n'
for command in "${commands[@]}"; do
  case $command in
    matrix | prove) phases=(start setup server measuring undo) ;;
    worker) phases=(start joining playing leaving) ;; # The coordinator makes the report.
    *) phases=(start joining playing leaving report) ;;
  esac
  for phase in "${phases[@]}"; do
    for signal in KILL TERM INT HUP; do
      for wanted; do
        # shellcheck disable=SC2053 # It is a pattern.
        [[ $command/$phase/$signal == $wanted || $command/$phase/$signal == $wanted/* ]] || continue
        if [[ $command == "$lacking" ]]; then skipped=77; else try "$command" "$phase" "$signal"; fi
        break
      done
    done
  done
done
[[ $skipped -eq 0 ]] || echo "SKIPPED: prove, as this kernel has no token bucket filter"
[[ $tried -gt 0 || $skipped -ne 0 ]] || fail "there is no case $*"
[[ $failed -eq 0 ]] || fail "$failed of $tried cases are wrong; what they have written: $work"
exit "$skipped"
