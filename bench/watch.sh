#!/usr/bin/env bash
# The cost of watching 2,000 threads, compared with pidstat and top, as a table. Needs sysstat and
# procps. Arguments go to the benchmark, such as --seconds 60.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
cargo build --release --locked -p throng-cli -p throng-bench --bin throng --bin watch
exec "$target/release/watch" --throng "$target/release/throng" "$@"
