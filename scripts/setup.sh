#!/usr/bin/env bash
# Installs what a build, the lints and unit tests, or all tests need on Debian 12, and prints what
# it does. Does nothing if all is installed. Programs built from source are kept outside of the
# checkout: ~/.cargo/bin, ~/.cache/throng/bin.
#   scripts/setup.sh build|check|test|kubernetes|packages|book
set -euo pipefail

need_build=(gcc:gcc libc6-dev:/usr/include/stdio.h)
libraries=/usr/lib/$(uname -m)-linux-gnu
need_test=(
  "${need_build[@]}"
  pkg-config:pkg-config binutils:readelf janus:janus ffmpeg:ffmpeg chromium:chromium
  chromium-driver:chromedriver coturn:turnserver
  nftables:nft iproute2:ip libcap2-bin:setcap zstd:zstd procps:ps curl:curl openssl:openssl
  nginx-light:nginx
  libnginx-mod-rtmp:/usr/lib/nginx/modules/ngx_rtmp_module.so
  python3-venv:/usr/share/doc/python3-venv
  libgstreamer1.0-dev:/usr/share/doc/libgstreamer1.0-dev
  libgstreamer-plugins-base1.0-dev:/usr/share/doc/libgstreamer-plugins-base1.0-dev
  gstreamer1.0-tools:gst-launch-1.0
  gstreamer1.0-plugins-base:/usr/share/doc/gstreamer1.0-plugins-base
  gstreamer1.0-plugins-good:/usr/share/doc/gstreamer1.0-plugins-good
  nats-server:nats-server faketime:faketime chrony:chronyd openssh-server:sshd openssh-client:ssh
  lighttpd:lighttpd caddy:caddy prosody:prosody inspircd:inspircd nodejs:node npm:npm
  sysstat:pidstat util-linux:losetup e2fsprogs:mkfs.ext4
  python3-websockets:/usr/lib/python3/dist-packages/websockets
  python3-yaml:/usr/lib/python3/dist-packages/yaml
  gstreamer1.0-plugins-base:$libraries/gstreamer-1.0/libgstapp.so
  gstreamer1.0-plugins-bad:$libraries/gstreamer-1.0/libgstshm.so
  gstreamer1.0-plugins-ugly:$libraries/gstreamer-1.0/libgstx264.so
  gir1.2-gst-rtsp-server-1.0:$libraries/girepository-1.0/GstRtspServer-1.0.typelib
  python3-gi:/usr/lib/python3/dist-packages/gi
  glib-networking:$libraries/gio/modules/libgiognutls.so
  libhiredis0.14:$libraries/libhiredis.so.0.14
  libjemalloc2:$libraries/libjemalloc.so.2
  libsrt1.5-openssl:$libraries/libsrt.so.1.5
  vlc-bin:cvlc vlc-plugin-base:$libraries/vlc/plugins/stream_out/libstream_out_rtp_plugin.so
)

# For scripts/kubernetes_proof.sh, which builds the rest.
need_kubernetes=(etcd-server:etcd nats-server:nats-server openssl:openssl python3:python3
  util-linux:unshare)

# For scripts/packages.sh.
need_packages=("${need_build[@]}" binutils:objcopy xz-utils:xz rpm:rpmbuild python3:python3)
# Only root may try what was made.
[[ $(id -u) -ne 0 ]] || need_packages+=(debootstrap:/usr/sbin/debootstrap)

case "${1:-}" in
  build | check) needs=("${need_build[@]}") ;;
  test) needs=("${need_test[@]}") ;;
  kubernetes) needs=("${need_kubernetes[@]}") ;;
  packages) needs=("${need_packages[@]}") ;;
  book) needs=("${need_build[@]}" python3:python3) ;;
  *) echo "usage: scripts/setup.sh build|check|test|kubernetes|packages|book" >&2; exit 2 ;;
esac

cd "$(dirname "$0")/.."
source scripts/steps.sh
command -v cargo >/dev/null || { echo "throng needs Rust: https://rustup.rs" >&2; exit 1; }

missing=()
for need in "${needs[@]}"; do
  package=${need%%:*} probe=${need#*:}
  if [[ $probe == /* ]]; then [[ -e $probe ]] || missing+=("$package")
  else PATH=$PATH:/usr/sbin:/sbin command -v "$probe" >/dev/null || missing+=("$package"); fi
done
kept=${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
if [[ $1 == test && ! (-x $kept/livekit-server && -x $kept/versitygw) ]]; then
  PATH=$PATH:/usr/local/go/bin command -v go >/dev/null || missing+=(golang-go ca-certificates)
fi

install() (
  # Servers are test fixtures here: their packaged services must not start and listen on every
  # interface.
  policy=/usr/sbin/policy-rc.d
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
    "${as_root[@]}" chmod +x $policy
    trap '"${as_root[@]}" rm -f $policy' EXIT
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "${missing[@]}" >/dev/null
)
if [[ ${#missing[@]} -gt 0 ]]; then
  command -v apt-get >/dev/null || { echo "please install: ${missing[*]}" >&2; exit 1; }
  as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || {
      echo "not root and no sudo; please install: ${missing[*]}" >&2; exit 1
    }
    as_root=(sudo)
  fi
  echo "Installing with apt${as_root:+ (by sudo)}: ${missing[*]}"
  step "packages" install
fi

# Programs without a package are built from source, once, when everything else is installed.
tool() { # NAME VERSION FLAGS...: a subcommand of cargo's
  local name=$1 version=$2; shift 2
  PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin command -v "$name" >/dev/null && return 0
  echo "Building $name $version (once, a few minutes)"
  # Building it takes longer than running it.
  step "$name from source" env CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off \
    cargo install -q --locked "$name@$version" "$@"
}
case $1 in
  build | kubernetes | packages) exit 0 ;;
  book) tool mdbook 0.5.4 --no-default-features --features search; exit ;;
esac
tool cargo-nextest 0.9.151 --no-default-features --features default-no-update
tool cargo-deny 0.20.2 || echo "cargo-deny is not there: dependencies will not be checked"
[[ $1 == check ]] && exit 0
step "LiveKit from source" scripts/livekit.sh ||
  echo "LiveKit is not there: the tests that need it will be skipped"
step "versitygw from source" scripts/versitygw.sh ||
  echo "versitygw is not there: the test that needs it will be skipped"
step "packages of npm" examples/evening/packages.sh ||
  echo "The packages of examples/evening are not there: the tests that need it will be skipped"
step "axe-core of npm" scripts/axe.sh ||
  echo "axe-core is not there: the test that needs it will be skipped"
