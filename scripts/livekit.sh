#!/usr/bin/env bash
# Builds the LiveKit server that the tests start, once, and keeps it in ~/.cache/throng/bin. It has
# no Debian package; its Go module of this version builds unchanged, by Go 1.26 or newer.
set -euo pipefail
source "$(dirname "$0")/go.sh"

version=1.13.5
kept=${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
server=$kept/livekit-server-$version
# The plain name is for users with the folder in PATH, such as scripts/test.sh.
if [[ -x $server ]]; then
  [[ -e $kept/livekit-server ]] || ln -s "$(basename "$server")" "$kept/livekit-server"
  exit 0
fi

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
find_go LiveKit "$work"

echo "Building livekit-server $version (once, a few minutes)"
"$go" install "github.com/livekit/livekit-server/cmd/server@v$version"
mkdir -p "$kept"
# In the folder first: who looks meanwhile finds the whole file or none.
mv "$work/bin/server" "$server.$$"
mv "$server.$$" "$server"
ln -sf "$(basename "$server")" "$kept/livekit-server"
echo "LiveKit $version is at $server"
