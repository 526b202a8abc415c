#!/usr/bin/env bash
# Runs the ring's tests, including those with malicious producers, killed processes and random
# damage to the shared memory, under AddressSanitizer, and those of one process under
# ThreadSanitizer too.
#   scripts/sanitizers.sh [address] [thread]        both unless named
# Needs the nightly toolchain (for ThreadSanitizer with rust-src); what lacks it is reported and
# skipped, and the script ends with 77.
set -euo pipefail
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}")
export CARGO_TARGET_DIR
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
target=$CARGO_TARGET_DIR
if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "The sanitizers are skipped: no nightly toolchain (rustup toolchain install nightly --component rust-src)"
  exit 77
fi

address() {
  echo "== AddressSanitizer"
  # A killed process leaks by design.
  export ASAN_OPTIONS=detect_leaks=0
  run() {
    RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR=$target/asan cargo +nightly test \
      -p throng-ring --locked --target "$host" "$@"
  }
  run --lib --test api
  # Left out: single steps, because instrumented code has too many, and the seccomp filter, which
  # forbids system calls of the sanitizer.
  for scene in hostile_producers killed_at_random consumer_restarts another_user soak; do
    run --test processes -- "$scene"
  done
}

thread() {
  echo "== ThreadSanitizer"
  if [[ ! -d $(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library ]]; then
    echo "ThreadSanitizer is skipped: it has to build the standard library (rustup component add rust-src --toolchain nightly)"
    skipped=77
    return
  fi
  # Not the tests with several processes: it cannot detect a race across processes.
  export TSAN_OPTIONS=suppressions=$PWD/core/tests/thread-sanitizer.supp
  RUSTFLAGS="-Zsanitizer=thread" CARGO_TARGET_DIR=$target/tsan \
    cargo +nightly test -p throng-ring --locked --target "$host" -Zbuild-std --lib --test api
}

skipped=0
for which in "${@:-address thread}"; do for one in $which; do "$one"; done; done
exit $skipped
