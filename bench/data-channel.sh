#!/usr/bin/env bash
# The cost of segments over a WebRTC data channel (docs/measurements/data-channels.md): two viewers
# of throng, each on a thread of its own, against two tabs of headless Chromium. In both one end
# asks for segment after segment, and the other sends it in messages of 65,535 bytes, ordered and
# reliable, over loopback; at most 1 MiB waits for acknowledgements. A tenth as many segments come
# before those that count.
#   bench/data-channel.sh [SEGMENTS [BYTES [ROUNDS]]]        200 1000000 2
# CPU time is that of both ends together: all threads of throng, and all processes of Chromium less
# those of the same time in which its two tabs send nothing. Every other round is in the opposite
# order. About a minute for each round after the build. Needs chromium and Debian's
# python3-websockets. DATA_CHANNEL names another binary than that of the release build.
set -euo pipefail
cd "$(dirname "$0")/.."
segments=${1:-200} bytes=${2:-1000000} rounds=${3:-2}

if [[ -z ${DATA_CHANNEL:-} ]]; then
  cargo build -q --release --locked -p throng-bench --bin data_channel
  DATA_CHANNEL=${CARGO_TARGET_DIR:-target}/release/data_channel
fi
command -v chromium >/dev/null && /usr/bin/python3 -c 'import websockets' \
  || { echo "chromium or python3-websockets is missing: see the beginning of $0" >&2; exit 1; }

[[ $(id -u) -ne 0 ]] ||
  renice -n -15 $$ >/dev/null # as root it comes before other work of the machine
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
measure() { # NAME
  case $1 in
    throng) "$DATA_CHANNEL" --segments "$segments" --bytes "$bytes" ;;
    chromium) /usr/bin/python3 bench/data-channel/chromium.py "$segments" "$bytes" ;;
  esac >>"$folder/$1"
}
for ((round = 0; round < rounds; round++)); do
  order=(throng chromium)
  ((round % 2 == 0)) || order=(chromium throng)
  for name in "${order[@]}"; do measure "$name"; done
done

/usr/bin/python3 - "$folder" "$segments" "$bytes" <<'PY'
import json, statistics, sys
folder, segments, length = sys.argv[1:]
rows = {name: [json.loads(line) for line in open(f"{folder}/{name}")] for name in ("throng", "chromium")}

def of(name, figure):
    values = [figure(row) for row in rows[name]]
    return statistics.median(values), min(values), max(values)

def ms_per_mb(row, of="cpu_s"):
    return row[of] * 1e3 / (row["bytes"] / 1e6)

def rate(row):
    return row["bytes"] / 1e6 / row["seconds"]

print(f"{segments} segments of {length} bytes over a data channel; {rows['chromium'][0]['name']}; median of {len(rows['throng'])} (lowest to highest)")
print(f"{'':10}{'MB':>8}{'MB/s':>24}{'CPU ms/MB, both ends':>30}")
for name in rows:
    cells = ("{:.1f} ({:.1f} to {:.1f})".format(*of(name, figure)) for figure in (rate, ms_per_mb))
    print(f"{name:10}{rows[name][0]['bytes'] / 1e6:8.0f}{next(cells):>24}{next(cells):>30}")
for end in ("giver", "taker"):
    print(f"throng's {end}: {of('throng', lambda row: ms_per_mb(row, f'{end}_cpu_s'))[0]:.1f} ms/MB")
ratio = of("chromium", ms_per_mb)[0] / of("throng", ms_per_mb)[0]
print(f"throng / chromium: 1/{ratio:.1f}" if ratio >= 1 else f"throng / chromium: {1 / ratio:.2f}")
PY
