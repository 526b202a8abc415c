#!/usr/bin/env bash
# The cost of downloads over HTTP/1.1, HTTP/2 and HTTP/3 against wrk, h2load and the bare libraries,
# as a table: about four minutes after the build. Needs two CPUs, and nginx, caddy, wrk and
# nghttp2-client (Debian's packages). Arguments go to the benchmark, such as --viewers 50.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
cargo build --release --locked -p throng-bench --bin http
exec "$target/release/http" "$@"
