#!/usr/bin/env bash
# The cost of participants of an XMPP chat: throng against one Node process with the same
# participants (bench/chat-bot), which reads stanzas with the parser of xmpp.js (`ltx`), or looks
# only at their beginning (`scan`). One after the other, each on a Prosody of its own with the
# configuration of examples/evening, on CPU 0; the generator has CPU 1.
# As root all of them come before other work of the machine (nice).
#   bench/chat.sh [PARTICIPANTS [ROOMS [PER_SECOND [SECONDS [GENERATOR...]]]]]
#                 400 1 10 75 throng ltx scan
# Prosody collects its garbage less often than by default, so that it sends as fast as it can. With
# STAND=1 it has the configuration of examples/evening as it is. VCARDS (none, authors, all) and
# KEEP, a folder for the run of throng, which then watches Prosody too, are of throng only.
# Needs prosody, nodejs (20), npm, python3, util-linux. THRONG names another binary than that of the
# release build.
set -euo pipefail
cd "$(dirname "$0")/.."
participants=${1:-400} rooms=${2:-1} rate=${3:-10} seconds=${4:-75}
shift $(($# < 4 ? $# : 4))
[[ $# -gt 0 ]] || set -- throng ltx scan

if [[ -z ${THRONG:-} ]]; then
  cargo build -q --release --locked -p throng-cli --bin throng
  THRONG=${CARGO_TARGET_DIR:-target}/release/throng
fi
for program in prosody node npm python3 curl taskset; do
  command -v "$program" >/dev/null || {
    echo "$program is missing: see the beginning of $0" >&2; exit 1
  }
done
ulimit -n "$(ulimit -Hn)"
[[ -d bench/chat-bot/node_modules ]] ||
  npm ci --prefix bench/chat-bot --ignore-scripts --no-audit --no-fund >/dev/null

[[ $(id -u) -ne 0 ]] || renice -n -15 $$ >/dev/null
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$folder"' EXIT
port=18590
start_prosody() { # NAME
  local dir=$folder/$1 text
  mkdir -p "$dir"/{prosody,tls}
  text=$(<examples/evening/prosody.cfg.lua.in)
  text=${text//@DIR@/$dir} text=${text//@HERE@/$PWD/examples/evening} text=${text//@PROSODY@/$port}
  text=${text//@DOMAIN@/localhost} text=${text//@UUID@/stage}
  [[ -n ${STAND:-} ]] ||
    text='gc = { mode = "incremental", threshold = 400, speed = 400 }'$'\n'$text
  printf '%s\n' "$text" >"$dir/prosody.cfg.lua"
  taskset -c 0 prosody --config "$dir/prosody.cfg.lua" -F >"$dir/log" 2>&1 &
  prosody=$!
  for _ in {1..100}; do
    curl -s --max-time 1 "http://127.0.0.1:$port/" >/dev/null && return; sleep 0.1
  done
  echo "Prosody does not answer on port $port:" >&2; tail -5 "$dir/log" >&2; exit 1
}

# Runs a command on CPU 1 and writes what it and Prosody used: CPU time, peak memory, and how full
# their CPUs were in each second. Prosody is full in a second in which it always ran, or waited for
# its CPU because others were on it.
cat >"$folder/measure.py" <<'PY'
import json, os, resource, sys, time
name, prosody, out, *command = sys.argv[1:]
tick = os.sysconf("SC_CLK_TCK")
def used(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / tick
def wanted(pid):
    ran, waited, _ = open(f"/proc/{pid}/schedstat").read().split()
    return (int(ran) + int(waited)) / 1e9
pid = os.fork()
if pid == 0:
    os.sched_setaffinity(0, {1})
    log = os.open(out, os.O_WRONLY | os.O_CREAT, 0o644)
    os.dup2(log, 1); os.dup2(log, 2)
    os.execvp(command[0], command)
began, first, before, seconds = time.time(), used(prosody), None, []
while True:
    ended, status, usage = os.wait4(pid, os.WNOHANG)
    if ended:
        break
    now = (time.time(), wanted(prosody), used(pid))
    if before and now[0] - before[0] >= 1:
        width = now[0] - before[0]
        seconds.append(((now[1] - before[1]) / width, (now[2] - before[2]) / width))
        before = now
    before = before or now
    time.sleep(0.02)
full = [own for server, own in seconds if server >= 0.95]
# A run that the generator limited (4) is shown like any other.
if os.waitstatus_to_exitcode(status) not in (0, 4):
    sys.exit(1)
json.dump({
    "name": name, "status": os.waitstatus_to_exitcode(status), "seconds": time.time() - began,
    "cpu_s": usage.ru_utime + usage.ru_stime, "user_s": usage.ru_utime, "memory_kb": usage.ru_maxrss,
    "prosody_cpu_s": used(prosody) - first, "prosody_full_s": len(full), "own_when_full": max(full, default=None),
    "own_max": max((own for _, own in seconds), default=0),
}, open(f"{out}.json", "w"))
PY
measure() { # NAME COMMAND...
  python3 "$folder/measure.py" "$1" "$prosody" "$folder/$1.out" "${@:2}" || {
    tail -20 "$folder/$1.out" >&2; exit 1
  }
  kill "$prosody"; wait "$prosody" 2>/dev/null || true
}

run=${KEEP:-$folder/run} vcards=${VCARDS:-none} streams=()
[[ $rooms -eq 1 ]] || streams=(--streams "$rooms")
room=$([[ $rooms -eq 1 ]] && echo stage || echo 'stage{stream}')@room.localhost
url=127.0.0.1:$port/xmpp-websocket domain=anon.localhost
for generator in "$@"; do
  case $generator in
    throng)
      start_prosody throng
      watch=(${KEEP:+--watch "pid=$prosody"})
      measure throng "$THRONG" view "xmpp+ws://$url?room=$room&domain=$domain" \
        -n "$participants" "${streams[@]}" \
        --every "$((1000000 / rate))us" --for "${seconds}s" \
        --set "crowd.chat={ vcards = \"$vcards\" }" --set run.warm_up=0s \
        --output "$run" "${watch[@]}"
      "$THRONG" report "$run" --json >"$folder/throng.report" || true ;;
    ltx | scan)
      start_prosody "$generator"
      ROOMS=$rooms measure "$generator" node bench/chat-bot/bot.mjs "ws://$url" "$domain" "$room" \
        "$participants" "$rate" "$seconds" "$generator" ;;
    *) echo "a generator is throng, ltx or scan" >&2; exit 2 ;;
  esac
done

each=$((participants / rooms)) python3 - "$folder" "$participants" "$rooms" "$rate" "$seconds" "$@" <<'PY'
import json, os, sys
folder, participants, rooms, rate, seconds, *names = sys.argv[1:]
each = int(os.environ["each"])
print(f"{participants} participants in {rooms} room{'s' * (rooms != '1')}, {rate} joins a second, {seconds} s; "
      f"{int(rooms) * each * (each + 1)} presences are to come")
print(f"{'':8}{'joined':>8}{'presences':>11}{'CPU s':>8}{'µs/presence':>13}{'peak MB':>9}{'own CPU max':>13}"
      f"{'Prosody CPU s':>15}{'its core full':>15}{'own CPU then':>14}")
rows = {}
for name in names:
    row = json.load(open(f"{folder}/{name}.out.json"))
    if name == "throng":
        chat = json.load(open(f"{folder}/throng.report"))["chat"]
        row |= {"joined": chat["joined"]["reached"], "presences": chat["presences_received"]}
    else:
        row |= json.loads([line for line in open(f"{folder}/{name}.out") if line.startswith("{")][-1])
    rows[name] = row
    row["each_us"] = row["cpu_s"] / max(row["presences"], 1) * 1e6
    then = f"{row['own_when_full']:.0%}" if row["own_when_full"] is not None else "-"
    print(f"{name:8}{row['joined']:8}{row['presences']:11}{row['cpu_s']:8.2f}{row['each_us']:13.2f}{row['memory_kb'] / 1e3:9.1f}"
          f"{row['own_max']:13.0%}{row['prosody_cpu_s']:15.1f}{row['prosody_full_s']:13} s{then:>14}")
for name in names:
    if name != "throng" and "throng" in rows:
        one, other = rows["throng"], rows[name]
        print(f"throng / {name}: CPU {one['cpu_s'] / other['cpu_s']:.2f}, memory {one['memory_kb'] / other['memory_kb']:.2f}")
PY
