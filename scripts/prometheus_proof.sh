#!/usr/bin/env bash
# What `--prometheus` gives, scraped by a real Prometheus on loopback (Debian's package, of which
# only the programs are used): of viewers and a publisher of the stage, a search, players of a file
# and of a live stream, a chat, and a fleet of two workers. scripts/prometheus_queried.py asks it
# what the panels of deploy/grafana ask, and a second one, which takes native histograms, for those.
# promtool reads the files of deploy/prometheus.
#   scripts/prometheus_proof.sh [PATH-OF-THRONG]
set -euo pipefail
cd "$(dirname "$0")/.."
throng=$(realpath -m "${1:-${CARGO_TARGET_DIR:-target}/release/throng}")
[[ -x $throng ]] || { echo "there is no $throng: make build" >&2; exit 1; }
source scripts/background.sh

# Unpacked, not installed: no service starts.
unpack() {
  mkdir "$work/package"
  (cd "$work/package" && apt-get download prometheus && dpkg -x ./*.deb .) >"$work/apt.log" 2>&1 ||
    { cat "$work/apt.log" >&2; echo "Debian's package prometheus cannot be fetched" >&2; exit 1; }
  PATH=$PATH:$work/package/usr/bin
}
command -v prometheus >/dev/null && command -v promtool >/dev/null || unpack
promtool check config deploy/prometheus/prometheus.yml

names="view find play live publish chat fleet"
read -r stage full files bus classic native views finds plays lives publishes chats fleets \
  <<<"$(free_ports 13)"
ports=("$views" "$finds" "$plays" "$lives" "$publishes" "$chats" "$fleets")
prometheus_of() { # NAME PORT FLAGS...
  local name=$1 port=$2
  shift 2
  background "$name" "Server is ready" prometheus --config.file="$work/prometheus.yml" \
    --storage.tsdb.path="$work/$name" --web.listen-address="127.0.0.1:$port" "$@"
}
jobs() {
  local name at=0
  printf 'global: { scrape_interval: 1s }\nscrape_configs:\n'
  for name in $names; do
    printf '  - { job_name: %s, static_configs: [ { targets: ["127.0.0.1:%s"] } ] }\n' \
      "$name" "${ports[at++]}"
  done
}
jobs >"$work/prometheus.yml"

background stage '^ *watch' "$throng" stage --listen "127.0.0.1:$stage" --card low
stage_pid=${pids[-1]}
background full '^ *watch' "$throng" stage --listen "127.0.0.1:$full" --card low --max-viewers 6
ffmpeg -loglevel error -f lavfi -i testsrc2=size=320x180:rate=25 -t 60 -pix_fmt yuv420p \
  -movflags +faststart "$work/film.mp4"
background encoder 'Opening' ffmpeg -nostdin -re -f lavfi -i testsrc2=size=320x180:rate=25 \
  -c:v libx264 -preset ultrafast -g 25 -pix_fmt yuv420p -f hls -hls_time 1 -hls_list_size 8 \
  -hls_delete_threshold 4 -hls_flags delete_segments+independent_segments+program_date_time \
  "$work/live.m3u8"
background room '^[0-9]' /usr/bin/python3 -u crates/cli/tests/data/chat/room.py well
cat >"$work/chat.toml" <<TOML
[target]
url = "chat+ws://127.0.0.1:$(cat "$work/room.log")/chat"
[run]
duration = "90s"
[crowd]
size = 5
arrival = { every = "200ms" }
[crowd.chat]
every = "2s"
[crowd.chat.template]
room = "stage"
join = [{ send = '{"join":"{room}","as":"{nick}"}', expect = '"joined"' }]
say = '{"say":"{text}"}'
pong = { on = '{"type": "ping"', send = '{"type":"pong"}' }
TOML
background files 'Serving' python3 -u -m http.server "$files" --bind 127.0.0.1 --directory "$work"
background bus 'Server is ready' \
  nats-server --jetstream --store_dir "$work/bus" --addr 127.0.0.1 --port "$bus"
for worker in one two; do
  background "$worker" . "$throng" worker --fleet "nats://127.0.0.1:$bus" --name "$worker" --once
done
prometheus_of classic "$classic"
prometheus_of native "$native" --enable-feature=native-histograms

run() { # NAME PORT COMMAND...: with the figures at PORT
  local name=$1 port=$2
  shift 2
  background "$name" 'metrics' "$throng" "$@" --plain --prometheus "127.0.0.1:$port" \
    --output "$work/$name.run"
}
whep=whep+http://127.0.0.1
run view "$views" view "$whep:$stage/whep" -n 8 --every 200ms --for 90s --watch "pid=$stage_pid" \
  --objective "video.loss p95 < 1%"
run find "$finds" find "$whep:$full/whep" --budget 90s
run play "$plays" view "http://127.0.0.1:$files/film.mp4" -n 3 --every 1s --for 90s
# Written with the first segment.
for _ in $(seq 50); do [[ -s $work/live.m3u8 ]] && break; sleep 0.2; done
run live "$lives" view "http://127.0.0.1:$files/live.m3u8" -n 2 --every 1s --for 90s
run publish "$publishes" view "whip+http://127.0.0.1:$stage/whip?stream=own" -n 1 --for 90s \
  --set crowd.subscribe=none --set 'crowd.publish={video="144p",codec="h264"}'
run chat "$chats" run "$work/chat.toml"
run fleet "$fleets" view "$whep:$stage/whep" -n 4 --every 1s --for 90s \
  --fleet "nats://127.0.0.1:$bus" --workers 2
# Rates are over 20 s.
sleep 40
scripts/prometheus_queried.py "$classic" "$native" "${ports[@]}" && exit
keep_work
exit 1
