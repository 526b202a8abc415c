#!/usr/bin/env bash
# Makes an OCI image of throng and nothing else, without fetching anything: the program,
# certificates of authorities, /tmp. The same program and the same certificates give the same
# digest, by the same version of buildah.
#   deploy/image/build.sh [-o FOLDER] [BINARY]
# Without BINARY the program is built. Writes FOLDER/throng.tar [target/image] (an OCI archive:
# `podman load -i`, `skopeo copy oci-archive:…`) and the program's symbols as FOLDER/throng.debug,
# and prints the image's digest.
set -euo pipefail

root=$(realpath "$(dirname "$0")/../..")
output=$root/target/image
while getopts o: flag; do
  case $flag in
    o) output=$(realpath -m "$OPTARG") ;;
    *) echo "usage: deploy/image/build.sh [-o FOLDER] [BINARY]" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
binary=
[[ $# -eq 0 ]] || binary=$(realpath "$1")
cd "$root"

command -v buildah >/dev/null || {
  echo "buildah is not installed (Debian: apt install buildah)" >&2; exit 1
}
for program in readelf strip objcopy; do
  command -v $program >/dev/null || {
    echo "$program is not installed (Debian: apt install binutils)" >&2; exit 1
  }
done
authorities=/etc/ssl/certs/ca-certificates.crt
[[ -s $authorities ]] || {
  echo "there is no $authorities (Debian: apt install ca-certificates)" >&2; exit 1
}

# The image has no libraries. glibc links names and addresses (getaddrinfo) into a static program
# since 2.34, where files and DNS are no modules of their own any more; before, they would be
# missing.
static_build() {
  local glibc target
  glibc=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)
  if [[ $(printf '%s\n' 2.34 "$glibc" | sort -V | head -1) != 2.34 ]]; then
    echo "this host has glibc $glibc, and a static program that asks DNS needs 2.34 or newer: give a BINARY" >&2
    exit 1
  fi
  target=$(uname -m)-unknown-linux-gnu
  # With --target, flags are those of the program, and not of procedural macros, which are
  # libraries.
  RUSTFLAGS="-C target-feature=+crt-static" cargo build --profile dist --locked --target "$target" \
    -p throng-cli
  binary=${CARGO_TARGET_DIR:-target}/$target/dist/throng
}
[[ -n $binary ]] || static_build

readelf -h "$binary" >/dev/null || { echo "$binary is no program" >&2; exit 1; }
needed=$(readelf -d "$binary" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | paste -sd' ')
if [[ -n $needed ]] || readelf -lW "$binary" | grep -q INTERP; then
  echo "$binary is not static, it needs ${needed:-a loader}: build it as deploy/image/build.sh does" >&2
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/usr/bin" "$work/root/etc/ssl/certs" "$work/root/tmp"
# Without what debuggers need, which is most of it and stays beside. A fleet plays with one file:
# coordinator and workers are of this image.
strip -o "$work/root/usr/bin/throng" "$binary"
mkdir -p "$output"
objcopy --only-keep-debug "$binary" "$output/throng.debug"
chmod 755 "$work/root/usr/bin/throng"
install -m 644 "$authorities" "$work/root/etc/ssl/certs/ca-certificates.crt"
# The file first, as everywhere: without this one glibc's default would count.
echo "hosts: files dns" >"$work/root/etc/nsswitch.conf"
chmod 755 "$work/root" "$work/root"/{usr,usr/bin,etc,etc/ssl,etc/ssl/certs}
chmod 644 "$work/root/etc/nsswitch.conf"
chmod 1777 "$work/root/tmp"
find "$work/root" -exec touch -h -d @0 {} +

# Its own store, which goes with it: nothing of the host's images is read or changed.
image() { buildah --storage-driver vfs --root "$work/store" --runroot "$work/run" "$@"; }
machine=$(uname -m)
case $machine in x86_64) machine=amd64 ;; aarch64) machine=arm64 ;; esac
container=$(image from scratch)
image copy --quiet --chown 0:0 "$container" "$work/root" / >/dev/null
image config --arch "$machine" --os linux --user 65534:65534 --workingdir / \
  --entrypoint '["/usr/bin/throng"]' \
  --env PATH=/usr/bin --label org.opencontainers.image.title=throng "$container"
rm -f "$output/throng.tar"
image commit --quiet --rm --format oci --timestamp 0 "$container" \
  "oci-archive:$output/throng.tar:throng:latest" >/dev/null

digest=$(tar -xOf "$output/throng.tar" index.json | grep -oE 'sha256:[0-9a-f]{64}' | head -1)
build_id=$(readelf -n "$binary" | sed -nE 's/.*Build ID: ([0-9a-f]{2})([0-9a-f]+)$/\1\/\2/p' |
  head -1)
echo "$output/throng.tar $digest"
[[ -z $build_id ]] ||
  echo "symbols: $output/throng.debug, for profilers and debuggers at /usr/lib/debug/.build-id/$build_id.debug" >&2
