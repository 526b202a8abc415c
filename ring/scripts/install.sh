#!/usr/bin/env bash
# Installs the ring's C interface: header, shared and static library, pkg-config file.
#   scripts/install.sh PREFIX                   builds it first
#   scripts/install.sh --built FOLDER PREFIX    takes the libraries from FOLDER
# DESTDIR, if set, is a prefix of every path that is written, for packages. LIBDIR is where
# libraries go: lib, or for example lib/x86_64-linux-gnu.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
export CARGO_TARGET_DIR

usage() { echo "usage: scripts/install.sh [--built FOLDER] PREFIX" >&2; exit 2; }
built=
if [[ ${1:-} == --built ]]; then built=${2:-}; [[ -n $built ]] || usage; shift 2; fi
[[ $# -eq 1 && $1 != -* ]] || usage
prefix=$(realpath -m "$1") libdir=${LIBDIR:-lib}
[[ -z $built ]] || built=$(realpath "$built")

cd "$root"
if [[ -z $built ]]; then
  cargo build --release --locked -p throng-ring-c
  built=$CARGO_TARGET_DIR/release
fi
command -v readelf >/dev/null || { echo "readelf is missing: install binutils" >&2; exit 1; }

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
# The library's soname, which programs linked against it load.
soname=$(readelf -d "$built/libthrong_ring_c.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]$/\1/p')
[[ -n $version && -n $soname ]] || {
  echo "no version in Cargo.toml, or no soname in $built/libthrong_ring_c.so" >&2; exit 1
}

to=${DESTDIR:-}$prefix
install -d "$to/include" "$to/$libdir/pkgconfig"
install -m 644 c/include/throng_ring.h "$to/include/"
install -m 644 "$built/libthrong_ring_c.a" "$to/$libdir/"
install -m 755 "$built/libthrong_ring_c.so" "$to/$libdir/libthrong_ring_c.so.$version"
ln -sf "libthrong_ring_c.so.$version" "$to/$libdir/$soname"
ln -sf "$soname" "$to/$libdir/libthrong_ring_c.so"
sed "s|@prefix@|$prefix|; s|@libdir@|$libdir|; s|@version@|$version|" c/throng-ring.pc.in \
  >"$to/$libdir/pkgconfig/throng-ring.pc"
echo "Installed throng-ring $version in $to. Programs find it by: pkg-config --cflags --libs throng-ring"
echo "(PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig, and LD_LIBRARY_PATH=$prefix/$libdir to run them, unless the system looks there)"
