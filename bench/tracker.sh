#!/usr/bin/env bash
# The cost of the WebTorrent tracker's client in viewers with peers (docs/measurements/tracker.md),
# on the tracker that PeerTube runs: the CPU time of throng with a tracker that asks for an
# announcement each 10 s, less that of the same viewers without one. They play a recording of
# 2 minutes in segments of 30 s and a few kilobytes, so that playing costs little. About three
# minutes after the build.
#   bench/tracker.sh [VIEWERS [SECONDS]]        2000 75
# Needs nginx, ffmpeg, nodejs (20), npm, python3, GNU time. THRONG names another binary than that of
# the release build.
set -euo pipefail
cd "$(dirname "$0")/.."
viewers=${1:-2000} seconds=${2:-75} ramp=20
PATH=$PATH:/usr/sbin

if [[ -z ${THRONG:-} ]]; then
  cargo build -q --release --locked -p throng-cli --bin throng
  THRONG=${CARGO_TARGET_DIR:-target}/release/throng
fi
for program in nginx ffmpeg node npm python3 taskset /usr/bin/time; do
  command -v "$program" >/dev/null || {
    echo "$program is missing: see the beginning of $0" >&2; exit 1
  }
done
ulimit -n "$(ulimit -Hn)"

# The packages of examples/evening, where it keeps them.
lock=$(sha256sum <examples/evening/package-lock.json)
packages=${XDG_CACHE_HOME:-$HOME/.cache}/throng/evening/${lock:0:12}
if [[ ! -e $packages/done ]]; then
  mkdir -p "$packages"
  cp examples/evening/package{,-lock}.json "$packages/"
  npm ci --prefix "$packages" --ignore-scripts --no-audit --no-fund >/dev/null
  touch "$packages/done"
fi

[[ $(id -u) -ne 0 ]] ||
  renice -n -15 $$ >/dev/null # as root it comes before other work of the machine
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$folder"' EXIT
mkdir "$folder/vod"
chmod 755 "$folder" # nginx, started as root, reads as nobody
http=18595 port=18596
cat >"$folder/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $folder/pid; error_log $folder/error.log;
events { worker_connections 20000; }
http {
  access_log off; types { application/vnd.apple.mpegurl m3u8; video/mp2t ts; }
  client_body_temp_path $folder/b; proxy_temp_path $folder/p; fastcgi_temp_path $folder/f; uwsgi_temp_path $folder/u; scgi_temp_path $folder/s;
  server { listen 127.0.0.1:$http backlog=4096; root $folder; }
}
CONF
ffmpeg -nostdin -v error -f lavfi -i testsrc=s=64x36:r=1 -t 120 -c:v libx264 -preset ultrafast \
  -g 30 -keyint_min 30 -sc_threshold 0 \
  -f hls -hls_time 30 -hls_list_size 0 -hls_playlist_type vod "$folder/vod/vod.m3u8"
taskset -c 0 nginx -p "$folder" -c "$folder/nginx.conf" -e "$folder/error.log" &

# Its WebSocket announces a fifth of the interval that it is given.
cat >"$folder/tracker.mjs" <<JS
const { Server } = await import("$packages/node_modules/@peertube/bittorrent-tracker-server/index.js")
const tracker = new Server({ http: true, udp: false, ws: true, interval: 50000, stats: false })
tracker.on("error", error => console.error(error.message))
tracker.on("warning", () => {})
tracker.listen($port, "127.0.0.1", () => console.log("ready"))
JS
taskset -c 0 node "$folder/tracker.mjs" >"$folder/tracker.log" 2>&1 &
tracker=$!
until grep -q ready "$folder/tracker.log"; do
  sleep 0.1; kill -0 $tracker || { cat "$folder/tracker.log" >&2; exit 1; }
done

measure() { # NAME P2P
  /usr/bin/time -o "$folder/$1.time" -f "%U %S %M" taskset -c 1 \
    "$THRONG" view "http://127.0.0.1:$http/vod/vod.m3u8" -n "$viewers" \
    --every "$((ramp * 1000000 / viewers))us" --for "${seconds}s" \
    --set "crowd.player={ p2p = $2 }" --output "$folder/$1" \
    >"$folder/$1.out" 2>&1 || [[ $? -eq 4 ]] ||
    { tail -20 "$folder/$1.out" >&2; exit 1; } # 4: its figures are shown too
  "$THRONG" report "$folder/$1" --json >"$folder/$1.json" || true
}
ticks() { sed 's/.*) //' "/proc/$tracker/stat" | awk '{ print $12 + $13 }'; }
measure without '{}'
before=$(ticks)
measure with "{ tracker = \"ws://127.0.0.1:$port/\" }"
after=$(ticks)

python3 - "$folder" "$viewers" "$seconds" "$ramp" "$(((after - before) * 1000 / $(getconf CLK_TCK)))" <<'PY'
import json, sys
folder, viewers, seconds, ramp, tracker_ms = sys.argv[1:]
rows = {}
for name in ("without", "with"):
    user, system, memory = map(float, open(f"{folder}/{name}.time").read().split("\n")[-2].split())
    peers = json.load(open(f"{folder}/{name}.json"))["playback"]["peers"] or {}
    rows[name] = (user + system, memory, peers)
print(f"{viewers} viewers for {seconds} s, joining within {ramp} s, on one tracker that asks for an announcement each 10 s")
print(f"{'':18}{'CPU s':>8}{'peak MB':>9}{'announced':>11}{'offers came':>13}{'answers came':>14}{'degree':>8}")
for name, (cpu, memory, peers) in rows.items():
    print(f"{name + ' tracker':18}{cpu:8.1f}{memory / 1e3:9.0f}{peers.get('announces', 0):11}{peers.get('offers_received', 0):13}"
          f"{peers.get('answers_received', 0):14}{peers.get('degree') or 0:8.1f}")
announces = rows["with"][2]["announces"]
print(f"an announcement (five offers, an answer to each that came): {(rows['with'][0] - rows['without'][0]) / announces * 1e3:.3f} ms of CPU"
      f"; the tracker's own: {int(tracker_ms) / announces:.3f} ms")
print(f"all of the run for each announcement: {rows['with'][0] / announces * 1e3:.3f} ms")
PY
