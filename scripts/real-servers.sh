#!/usr/bin/env bash
# Builds a media server that no package has from its public source, and keeps it in
# ~/.cache/throng/servers, where the tests look for it (docs/servers.md).
# Go servers need Go 1.24 or newer and git; the others git (live555: curl), a C++ compiler and what
# is said at each.
set -euo pipefail

kept=${XDG_CACHE_HOME:-$HOME/.cache}/throng/servers

usage() {
  echo "usage: scripts/real-servers.sh mediamtx|go2rtc|galene|srs|OvenMediaEngine|live555MediaServer" >&2
  exit 2
}

[[ $# -eq 1 ]] || usage
mkdir -p "$kept"
work=$(mktemp -d)
# Files of Go's module cache are read-only.
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
export GOPATH=$work/path GOCACHE=$work/cache GOFLAGS=-buildvcs=false CGO_ENABLED=0

need() {
  for program in "$@"; do
    command -v "$program" >/dev/null || { echo "$program is not installed" >&2; exit 1; }
  done
}

# clone URL: into $work/source.
clone() {
  need git
  git clone --quiet --depth 1 "$1" "$work/source"
  cd "$work/source"
}

# keep FILE NAME: an old program that runs is replaced, not written into.
keep() {
  strip "$1" 2>/dev/null || true
  install -m 755 "$1" "$kept/$2.part"
  mv "$kept/$2.part" "$kept/$2"
  echo "$kept/$2"
}

case $1 in
  mediamtx)
    need go
    clone https://github.com/bluenviron/mediamtx
    # Fetches what it embeds.
    go generate ./...
    go build -o mediamtx .
    keep mediamtx mediamtx
    ;;
  go2rtc)
    need go
    clone https://github.com/AlexxIT/go2rtc
    go build -o program .
    keep program go2rtc
    ;;
  galene)
    need go
    clone https://github.com/jech/galene
    go build -o program .
    keep program galene
    ;;
  srs)
    # apt install build-essential automake cmake pkg-config tclsh unzip
    need g++ make cmake automake pkg-config tclsh unzip
    clone https://github.com/ossrs/srs
    cd trunk
    ./configure
    make -j"$(nproc)"
    keep objs/srs srs
    ;;
  ome | OvenMediaEngine)
    # Its script installs packages and builds ffmpeg and SRT below /opt, as root.
    need make
    clone https://github.com/AirenSoft/OvenMediaEngine
    ./misc/prerequisites.sh
    cd src
    make release
    keep bin/RELEASE/OvenMediaEngine OvenMediaEngine
    ;;
  live555 | live555MediaServer)
    # apt install build-essential libssl-dev
    need g++ make curl tar
    curl --fail --silent --show-error --location \
      http://www.live555.com/liveMedia/public/live555-latest.tar.gz |
      tar -xz -C "$work"
    cd "$work/live"
    ./genMakefiles linux-64bit
    make -j"$(nproc)"
    keep mediaServer/live555MediaServer live555MediaServer
    ;;
  *) usage ;;
esac
