#!/usr/bin/env bash
# The cost of live HLS viewers: throng against k6 that polls the same playlist and fetches the same
# segments, one after the other on one nginx, as a table: about four minutes after the build. Needs
# nginx, ffmpeg, GNU time (Debian's packages), and k6 in PATH (`go install go.k6.io/k6@v1.8.1`).
#   bench/hls.sh [VIEWERS] [SECONDS]
# THRONG names another binary than that of the release build.
set -euo pipefail
cd "$(dirname "$0")/.."
viewers=${1:-1000} seconds=${2:-60} ramp=20
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin:/usr/sbin

if [[ -z ${THRONG:-} ]]; then
  cargo build -q --release --locked -p throng-cli --bin throng
  THRONG=${CARGO_TARGET_DIR:-target}/release/throng
fi
for program in nginx ffmpeg k6 /usr/bin/time; do
  command -v "$program" >/dev/null || {
    echo "$program is missing: see the beginning of $0" >&2; exit 1
  }
done
ulimit -n "$(ulimit -Hn)"

folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$folder"' EXIT
mkdir "$folder/live"
chmod 755 "$folder" # nginx, started as root, reads as nobody
port=18499
cat >"$folder/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $folder/pid; error_log $folder/error.log;
events { worker_connections 20000; }
http {
  log_format brief '\$http_user_agent|\$uri|\$status|\$body_bytes_sent'; access_log $folder/access.log brief buffer=256k flush=1s;
  client_body_temp_path $folder/b; proxy_temp_path $folder/p; fastcgi_temp_path $folder/f; uwsgi_temp_path $folder/u; scgi_temp_path $folder/s;
  types { application/vnd.apple.mpegurl m3u8; video/mp2t ts; }
  sendfile on; keepalive_requests 1000000;
  server { listen 127.0.0.1:$port backlog=4096; root $folder; }
}
CONF
ffmpeg -nostdin -v error -re -f lavfi -i testsrc2=s=640x360:r=25 -c:v libx264 -preset ultrafast \
  -tune zerolatency -g 100 \
  -keyint_min 100 -sc_threshold 0 -b:v 1000k -minrate 1000k -maxrate 1000k -bufsize 1000k \
  -x264-params nal-hrd=cbr \
  -f hls -hls_time 4 -hls_list_size 8 -hls_flags delete_segments+program_date_time \
  "$folder/live/live.m3u8" &
nginx -p "$folder" -c "$folder/nginx.conf" -e "$folder/error.log" &

cat >"$folder/viewer.js" <<'JS'
import http from "k6/http";
import { sleep } from "k6";
const seconds = +__ENV.SECONDS, ramp = +__ENV.RAMP, viewers = +__ENV.VIEWERS, base = __ENV.BASE;
export const options = {
  scenarios: { viewers: { executor: "per-vu-iterations", vus: viewers, iterations: 1, maxDuration: `${seconds + 60}s` } },
  summaryTrendStats: ["p(95)"],
};
const begin = Date.now();
// As hls.js: the third segment from the end first, the playlist again a target duration after its request, half of that
// when nothing is new. Bodies of segments are not kept.
export default function () {
  sleep((__VU / viewers) * ramp);
  let last = -1, known = "";
  while (Date.now() - begin < seconds * 1000) {
    const asked = Date.now();
    const text = http.get(`${base}/live.m3u8`).body || "";
    const first = +(text.match(/#EXT-X-MEDIA-SEQUENCE:(\d+)/) || [0, 0])[1];
    const files = text.split("\n").filter((line) => line && line[0] !== "#");
    if (last < 0) last = first + files.length - 4;
    for (let at = Math.max(0, last + 1 - first); at < files.length; at += 1) {
      http.get(`${base}/${files[at]}`, { responseType: "none" });
      last = first + at;
    }
    const wait = text === known ? 2 : 4;
    known = text;
    sleep(Math.max(0, wait - (Date.now() - asked) / 1000));
  }
}
JS

until [[ $(grep -c EXTINF "$folder/live/live.m3u8" 2>/dev/null) -ge 6 ]]; do sleep 0.5; done
base=http://127.0.0.1:$port/live
measure() { # NAME COMMAND...
  local name=$1; shift
  /usr/bin/time -o "$folder/$name.time" -f "%U %S %M" "$@" >"$folder/$name.out" 2>&1 || {
    tail -20 "$folder/$name.out" >&2; exit 1
  }
}
measure throng "$THRONG" view "$base/live.m3u8" -n "$viewers" \
  --every "$((ramp * 1000000 / viewers))us" --for "$((seconds))s" \
  --output "$folder/run"
measure k6 k6 run --quiet --no-usage-report -e BASE="$base" -e VIEWERS="$viewers" \
  -e SECONDS="$seconds" -e RAMP="$ramp" "$folder/viewer.js"
sleep 2

echo "$viewers viewers of 1 Mbit/s in segments of 4 s over HTTP/1.1 for $seconds s, joining within $ramp s; nginx and ffmpeg on the same machine"
grep -m1 "^[0-9]* viewers" "$folder/throng.out" || true
awk -F'|' -v viewers="$viewers" '
  FILENAME ~ /\.time$/ { split($0, t, " "); name = FILENAME; sub(".*/", "", name); sub(".time", "", name)
    cpu[name] = t[1] + t[2]; memory[name] = t[3]; next }
  { name = ($1 ~ /k6/) ? "k6" : ($1 ~ /throng/) ? "throng" : "other"; requests[name]++; bytes[name] += $4; if ($3 != 200) bad[name]++ }
  END {
    printf "%-8s %10s %10s %8s %8s %14s %12s\n", "", "requests", "MB", "not 200", "CPU s", "CPU ms / MB", "kB / viewer"
    for (i = 1; i <= 2; i++) { name = i == 1 ? "throng" : "k6"
      printf "%-8s %10d %10.0f %8d %8.1f %14.2f %12.0f\n", name, requests[name], bytes[name] / 1e6, bad[name], cpu[name],
        cpu[name] * 1e9 / bytes[name], memory[name] / viewers }
    printf "throng / k6: CPU per byte %.2f, memory %.2f\n", (cpu["throng"] / bytes["throng"]) / (cpu["k6"] / bytes["k6"]), memory["throng"] / memory["k6"]
  }' "$folder/throng.time" "$folder/k6.time" "$folder/access.log"
