#!/usr/bin/env bash
# Runs the unit tests of throng-net, whose code is unsafe where it talks to the kernel, under Miri,
# AddressSanitizer or ThreadSanitizer. Under Miri those without sockets: the reader of a packet ring
# with a test that plays the kernel, and what is read of frames, control messages and batches. A
# packet ring of the kernel needs root.
#   scripts/net.sh miri|address|thread...
# Needs the nightly toolchain (with miri, for ThreadSanitizer with rust-src); what lacks it is
# reported and skipped, and the script ends with 77.
set -euo pipefail
target=$(realpath -m "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}")
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')

miri() {
  if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "Miri is skipped: no nightly toolchain with it (rustup toolchain install nightly --component miri)"
    skipped=77
    return
  fi
  CARGO_TARGET_DIR=$target/miri cargo +nightly miri test -p throng-net --lib --locked
}

sanitized() { # NAME ARGUMENT...
  local name=$1
  shift
  RUSTFLAGS=-Zsanitizer=$name cargo +nightly test -p throng-net --lib --locked --target "$host" "$@"
}

address() {
  # Leaks are for Miri: to look for them takes ptrace, which containers forbid.
  ASAN_OPTIONS=detect_leaks=0 CARGO_TARGET_DIR=$target/asan sanitized address
}

thread() {
  if [[ ! -d $(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library ]]; then
    echo "ThreadSanitizer is skipped: it has to build the standard library (rustup component add rust-src --toolchain nightly)"
    skipped=77
    return
  fi
  CARGO_TARGET_DIR=$target/tsan sanitized thread -Zbuild-std packet_ring
}

skipped=0
for one in "$@"; do
  if [[ $one != miri ]] && ! cargo +nightly --version >/dev/null 2>&1; then
    echo "$one is skipped: no nightly toolchain (rustup toolchain install nightly --component rust-src)"
    skipped=77
    continue
  fi
  echo "== throng-net: $one"
  "$one"
done
exit $skipped
