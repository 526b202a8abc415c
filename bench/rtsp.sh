#!/usr/bin/env bash
# The cost of RTSP viewers against ffmpeg, GStreamer and the floor on a real gst-rtsp-server, as a
# table: about ten minutes after the build. Needs two CPUs and what `scripts/setup.sh test`
# installs. Arguments go to the benchmark, such as --viewers 50.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
cargo build --release --locked -p throng-cli -p throng-bench --bin throng --bin rtsp \
  --bin rtsp_floor
exec "$target/release/rtsp" --throng "$target/release/throng" "$@"
