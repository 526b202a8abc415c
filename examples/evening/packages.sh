#!/usr/bin/env bash
# Installs the packages of package.json, once per machine, and prints their folder. The lock file
# names the folder, so that another lock file has another.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lock=$(sha256sum <"$here/package-lock.json")
packages=${XDG_CACHE_HOME:-$HOME/.cache}/throng/evening/${lock:0:12}
mkdir -p "$packages"
# Test servers that start at the same time install once.
exec 9>"$packages/lock"
flock 9
if [[ ! -e $packages/done ]]; then
  cp "$here"/package{,-lock}.json "$packages/"
  npm ci --prefix "$packages" --ignore-scripts --no-audit --no-fund >"$packages/npm.log" 2>&1 ||
    { echo "npm ci failed:" >&2; tail -n 5 "$packages/npm.log" >&2; exit 1; }
  touch "$packages/done"
fi
echo "$packages"
