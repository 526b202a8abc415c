#!/usr/bin/env bash
# Builds the ring's GStreamer elements and runs one gst-launch into another: same caps, same frames,
# same times on both sides. Without GStreamer's development files it reports that and does nothing.
#   scripts/gstreamer.sh [build]   only built, with "build"
set -euo pipefail
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}")
export CARGO_TARGET_DIR
cd "$(dirname "$0")/.."
target=$CARGO_TARGET_DIR/gstreamer

skip() { echo "SKIPPED: the ring's GStreamer tests: $1"; exit 0; }
pkg-config --atleast-version=1.22 gstreamer-base-1.0 2>/dev/null ||
  skip "no libgstreamer1.0-dev 1.22 or later"
command -v gst-launch-1.0 >/dev/null || skip "no gst-launch-1.0"
gst-inspect-1.0 --exists videotestsrc || skip "no gstreamer1.0-plugins-base"

cargo build -q --locked --manifest-path gstreamer/Cargo.toml --target-dir "$target"
[[ ${1:-} == build ]] && exit 0
export GST_PLUGIN_PATH=$target/debug GST_REGISTRY=$target/registry.bin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# For each buffer its size, time and duration, and the caps, as one side sees them; the bytes are
# compared as files.
seen() {
  sed -nE 's/.*chain   \*{7} \(([^)]*)\) \((\s*[0-9]+ bytes), .*(pts: [^,]*), (duration: [^,]*), .*/\2 \3 \4/p' "$1"
}
caps() { sed -nE 's/.*ThrongRing(Sink|Src):.*GstPad:(sink|src): caps = //p' "$1" | tail -1; }

# check NAME FRAMES ELEMENTS...: frames made by ELEMENTS arrive unchanged. Now and then (about one
# run in ten here, a plain filesink behind a queue too) gst-launch -v leaves out the caps of all
# elements behind a queue: such a run is repeated.
check() {
  local attempt
  for attempt in 1 2 3; do
    once "$@" || return 1
    [[ -z $(caps "$folder/$1.producer") || -z $(caps "$folder/$1.consumer") ]] || break
  done
  local sent got; sent=$(caps "$folder/$1.producer") got=$(caps "$folder/$1.consumer")
  [[ -n $sent && $sent == "$got" ]] || { echo "$1: caps '$sent' became '$got'"; return 1; }
  echo "ok: $1, $2 buffers, ${got%%, *}"
}

# One run of check, without the caps.
once() {
  local name=$1 frames=$2; shift 2
  local socket=$folder/$name.sock
  rm -f "$socket"
  timeout 20 gst-launch-1.0 -v throngringsrc path="$socket" frame-bytes=115200 name=ring \
    ! tee name=t \
    t. ! queue ! identity name=seen silent=false ! fakesink sync=false \
    t. ! queue ! filesink location="$folder/$name.out" \
    >"$folder/$name.consumer" 2>"$folder/$name.consumer.errors" &
  local consumer=$!
  for ((i = 0; i < 300; i++)); do [[ -S $socket ]] && break; sleep 0.1; done
  timeout 20 gst-launch-1.0 -v videotestsrc num-buffers="$frames" pattern=ball \
    ! video/x-raw,format=I420,width=320,height=240,framerate=30/1 ! "$@" ! tee name=t \
    t. ! queue ! identity name=seen silent=false ! throngringsink path="$socket" sync=false \
    t. ! queue ! filesink location="$folder/$name.in" \
    >"$folder/$name.producer" 2>"$folder/$name.producer.errors" ||
    { cat "$folder/$name.producer"*; return 1; }
  wait $consumer || { cat "$folder/$name.consumer"*; return 1; }
  cmp "$folder/$name.in" "$folder/$name.out" || return 1
  diff <(seen "$folder/$name.producer") <(seen "$folder/$name.consumer") || return 1
  local count; count=$(seen "$folder/$name.consumer" | wc -l)
  [[ $count -eq $frames ]] || { echo "$name: $count buffers of $frames"; return 1; }
}

check raw 90 identity
if gst-inspect-1.0 --exists vp8enc; then
  check vp8 60 vp8enc deadline=1
else
  echo "SKIPPED: no vp8enc (gstreamer1.0-plugins-good)"
fi
