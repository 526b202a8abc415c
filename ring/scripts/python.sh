#!/usr/bin/env bash
# Builds the ring's Python package into a virtual environment under the target folder, and runs its
# tests: views and their guards, and Python with Python and with C in separate processes. Without
# Python it reports that and does nothing.
#   scripts/python.sh [build]      only built, with "build"
set -euo pipefail
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}")
export CARGO_TARGET_DIR
cd "$(dirname "$0")/.."
target=$CARGO_TARGET_DIR
venv=$target/python-venv

skip() { echo "SKIPPED: the ring's Python tests: $1"; exit 0; }
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  skip "no Python 3.11 or later"
if [[ ! -x $venv/bin/maturin ]]; then
  python3 -m venv "$venv" >/dev/null 2>&1 || skip "python3 has no venv"
  "$venv/bin/pip" install -q --disable-pip-version-check 'maturin>=1.9.4,<2' numpy ||
    skip "pip cannot install maturin"
fi

(cd python &&
  VIRTUAL_ENV=$venv CARGO_TARGET_DIR=$target/python "$venv/bin/maturin" develop -q --locked)

cargo build -q --locked -p throng-ring-c
cc -D_GNU_SOURCE -O1 -Ic/include c/examples/producer.c "$target/debug/libthrong_ring_c.a" \
  -lpthread -ldl -lm -o "$target/ring-c-producer"
[[ ${1:-} == build ]] && exit 0
THRONG_RING_C_PRODUCER=$target/ring-c-producer "$venv/bin/python" python/tests/test_ring.py
