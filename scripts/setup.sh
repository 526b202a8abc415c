#!/usr/bin/env bash
# Installs what a build, or the tests, need on Debian 12, and says what it does. Does nothing when all is there.
set -euo pipefail

need_build=(gcc:gcc libc6-dev:/usr/include/stdio.h)
need_test=(
  "${need_build[@]}"
  pkg-config:pkg-config binutils:readelf janus:janus ffmpeg:ffmpeg chromium:chromium chromium-driver:chromedriver coturn:turnserver
  nftables:nft iproute2:ip procps:ps nginx-light:nginx python3-venv:/usr/share/doc/python3-venv
  libgstreamer1.0-dev:/usr/share/doc/libgstreamer1.0-dev
  libgstreamer-plugins-base1.0-dev:/usr/share/doc/libgstreamer-plugins-base1.0-dev
  gstreamer1.0-tools:gst-launch-1.0 gstreamer1.0-plugins-base:/usr/share/doc/gstreamer1.0-plugins-base
  gstreamer1.0-plugins-good:/usr/share/doc/gstreamer1.0-plugins-good
  lighttpd:lighttpd caddy:caddy prosody:prosody sysstat:pidstat util-linux:losetup e2fsprogs:mkfs.ext4
  python3-websockets:/usr/lib/python3/dist-packages/websockets
  gstreamer1.0-plugins-base:/usr/lib/$(uname -m)-linux-gnu/gstreamer-1.0/libgstapp.so
  gstreamer1.0-plugins-bad:/usr/lib/$(uname -m)-linux-gnu/gstreamer-1.0/libgstshm.so
)

case "${1:-}" in
  build) needs=("${need_build[@]}") ;;
  test) needs=("${need_test[@]}") ;;
  *) echo "usage: scripts/setup.sh build|test" >&2; exit 2 ;;
esac

command -v cargo >/dev/null || { echo "throng needs Rust: https://rustup.rs" >&2; exit 1; }

missing=()
for need in "${needs[@]}"; do
  package=${need%%:*} probe=${need#*:}
  if [[ $probe == /* ]]; then [[ -e $probe ]] || missing+=("$package")
  else PATH=$PATH:/usr/sbin:/sbin command -v "$probe" >/dev/null || missing+=("$package"); fi
done
# LiveKit has no package: it is built with Go, once, when everything else is there. Tests that need it say so without it.
livekit() {
  [[ $1 == test ]] || return 0
  scripts/livekit.sh || echo "LiveKit is not there: the tests that need it will be skipped"
}
cd "$(dirname "$0")/.."
kept=${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
if [[ $1 == test ]] && ! compgen -G "$kept/livekit-server-*" >/dev/null; then
  PATH=$PATH:/usr/local/go/bin command -v go >/dev/null || missing+=(golang-go ca-certificates)
fi
[[ ${#missing[@]} -eq 0 ]] && { livekit "$1"; exit 0; }

command -v apt-get >/dev/null || { echo "please install: ${missing[*]}" >&2; exit 1; }
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "not root and no sudo; please install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "Installing with apt${as_root:+ (by sudo)}: ${missing[*]}"

# Servers are test fixtures here: their packaged services must not start and listen on every interface.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
  "${as_root[@]}" chmod +x $policy
  trap '"${as_root[@]}" rm -f $policy' EXIT
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
livekit "$1"
