#!/usr/bin/env bash
# Builds the LiveKit server that the tests start, once, and keeps it in ~/.cache/throng/bin. It has no Debian
# package; its Go module of this version builds unchanged. Debian 12's own Go is too old and only fetches a newer
# one, as a module.
set -euo pipefail

version=1.13.5
go_version=1.26.8
kept=${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
server=$kept/livekit-server-$version
# The plain name is for users with the folder in PATH, such as scripts/test.sh.
if [[ -x $server ]]; then
  [[ -e $kept/livekit-server ]] || ln -s "$(basename "$server")" "$kept/livekit-server"
  exit 0
fi

go=$(PATH=$PATH:/usr/local/go/bin:/usr/lib/go/bin command -v go || true)
[[ -n $go ]] || { echo "LiveKit is not built: there is no Go (apt install golang-go)" >&2; exit 1; }

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export GOPATH=$work/path GOCACHE=$work/cache GOBIN=$work/bin GOFLAGS=-buildvcs=false GOTOOLCHAIN=local

# The server's go.mod requires 1.26 or newer.
minor=$("$go" env GOVERSION | sed -E 's/^go1\.([0-9]+).*/\1/')
if [[ $minor -lt 26 ]]; then
  echo "Fetching Go $go_version (this one is $("$go" env GOVERSION))"
  machine=$("$go" env GOOS)-$("$go" env GOARCH)
  dir=$(cd "$work" && "$go" mod download -json "golang.org/toolchain@v0.0.1-go$go_version.$machine" |
    sed -nE 's/^\s*"Dir": "(.*)",?$/\1/p')
  [[ -n $dir ]] || { echo "LiveKit is not built: Go $go_version cannot be fetched" >&2; exit 1; }
  chmod -R u+x "$dir/bin" "$dir/pkg/tool"
  go=$dir/bin/go
  export GOROOT=$dir
fi

echo "Building livekit-server $version (once, a few minutes)"
"$go" install "github.com/livekit/livekit-server/cmd/server@v$version"
mkdir -p "$kept"
mv "$work/bin/server" "$server"
ln -sf "$(basename "$server")" "$kept/livekit-server"
echo "LiveKit $version is at $server"
