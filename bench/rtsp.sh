#!/usr/bin/env bash
# The cost of RTSP viewers against ffmpeg and GStreamer on a real gst-rtsp-server, as a table: about five minutes after
# the build. Needs two CPUs and what `scripts/setup.sh test` installs. Arguments go to the benchmark, such as --viewers 50.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
cargo build --release --locked -p throng-cli -p throng-bench --bin throng --bin rtsp
exec "$target/release/rtsp" --throng "$target/release/throng" "$@"
