#!/usr/bin/env bash
# The sessions of docs/export.md, as they stand there, in DuckDB and pandas: over the tables of a
# watched run of the stage behind a line that is too small for it. scripts/tables_sessions.py
# demands an answer to each question, and that both have counted the same. DuckDB and pandas are
# installed once, into ~/.cache/throng/tables.
#   scripts/tables_proof.sh [PATH-OF-THRONG]
set -euo pipefail
cd "$(dirname "$0")/.."
throng=$(realpath -m "${1:-${CARGO_TARGET_DIR:-target}/release/throng}")
[[ -x $throng ]] || { echo "there is no $throng: make build" >&2; exit 1; }
kept=${XDG_CACHE_HOME:-$HOME/.cache}/throng/tables
"$kept/bin/python" -c 'import duckdb, pandas' 2>/dev/null || {
  rm -rf "$kept"
  python3 -m venv "$kept" && "$kept/bin/pip" install --quiet duckdb pandas
}

source scripts/background.sh
read -r port <<<"$(free_ports 1)"
# The worker is busy enough to be among the threads of the third question.
background stage '^ *watch' "$throng" stage --listen "127.0.0.1:$port" --egress-cap 10Mbit/s \
  --work-per-packet 200
status=0
"$throng" view "whep+http://127.0.0.1:$port/whep" -n 15 --every 500ms --for 30s --plain \
  --watch "pid=${pids[-1]}" --output "$work/run" >"$work/throng.log" 2>&1 || status=$?
# 1: they are not served; 4: the machine was too slow. The tables are the same.
[[ $status =~ ^[014]$ ]] || { cat "$work/throng.log" >&2; exit 1; }
"$throng" export "$work/run" --csv -o "$work/tables"
"$kept/bin/python" scripts/tables_sessions.py "$work" && exit
keep_work
exit 1
