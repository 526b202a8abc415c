#!/usr/bin/env bash
# The cost of each transport between two processes, and the ratios that the ring must meet
# (docs/measurements/ipc.md): measured in one run, the median of its rounds. Argument: a PYTHON with
# `websockets` (optional); otherwise pip installs the package into a virtual environment in the
# target folder, because that one has the C extension. Debian's package lacks it and masks in pure
# Python, which would be too easy a baseline.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
venv=$(realpath -m "$target")/ipc-venv
# Whether a Python masks in C.
in_c() { "$1" -c 'import websockets.speedups' 2>/dev/null; }
if [[ -n ${1:-} ]]; then
  python="--python $1"
elif in_c "$venv/bin/python" || {
  python3 -m venv "$venv" &&
    "$venv/bin/pip" install -q --disable-pip-version-check websockets && in_c "$venv/bin/python"
} >/dev/null 2>&1; then
  python="--python $venv/bin/python"
else
  python=
  echo "pip cannot install websockets with its C extension here: the system's package is measured, if there is one"
fi
echo "websockets for Python: ${python:-that of the system}"
cargo build --release --locked -p throng-cli --features iceoryx2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

ratios() { # FOLDER RATIO...: each is ring-row other-row limit; writing in place is subtracted
  python3 - "$@" <<'PY'
import json, sys
rows = {r["transport"]: r["figures"] for r in json.load(open(sys.argv[1] + "/ipc.json"))["rows"]}
for ratio in sys.argv[2:]:
    ours, theirs, limit = ratio.split()
    a, b = rows.get(ours), rows.get(theirs)
    if not a or not b:
        print(f"  {ours} / {theirs}: not measured")
        continue
    own = a["cpu_s_per_gb"] - (rows["fill"]["cpu_s_per_gb"] if ours == "ring-in-place" else 0)
    value = own / b["cpu_s_per_gb"]
    print(f"  {ours} / {theirs} = {value:.3f} (at most {limit}): {'held' if value <= float(limit) else 'MISSED'}")
PY
}

measure() { # NAME ARGUMENTS
  echo "== throng ipc ${*:2}"
  # shellcheck disable=SC2086 # no Python is no argument
  # A row that fails (exit code 4) is reported in the table, and its ratios are not measured.
  "$target/release/throng" ipc "${@:2}" $python -o "$out/$1" || [[ $? -eq 4 ]]
}

measure video --frame 1920x1080:i420 --for 2s --rounds 5
ratios "$out/video" "ring memcpy 1.1" "ring-in-place memcpy 0.3" "ring websocket 0.125" \
  "ring websocket-python 0.1" \
  "ring unix-stream 0.45" "ring iceoryx2 1.1"
measure paced --frame 1920x1080:i420 --fps 30 --for 5s --rounds 3
for bytes in 64 1200 4096; do
  measure "small-$bytes" --frame "$bytes" --for 1s --rounds 3 --quick \
    --only memcpy,ring,iceoryx2,pipe,unix-stream,tcp,websocket
  ratios "$out/small-$bytes" "ring iceoryx2 0.2"
done
measure three --frame 1920x1080:i420 --producers 3 --for 2s --rounds 3 --quick
