#!/usr/bin/env bash
# Tries each package of scripts/packages.sh in a minimal Debian 12: installs it, plays three viewers
# on the embedded server, removes it, and demands that no file is left. As root, with debootstrap.
#   scripts/try-packages.sh [FOLDER]      by default target/packages
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh
packages=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/packages}")
source scripts/root.sh

# All files but what package managers and the system keep of what they did.
listing() {
  (cd "$root" && find . -xdev | grep -vE '^\./(tmp|var/log|var/cache|var/lib/(dpkg|rpm))(/|$)' |
    sort)
}

# What is played leaves its folder in /run, which is gone with it.
play='
  set -e
  command -v throng
  throng --version
  throng stage --listen 127.0.0.1:0 >/run/stage &
  for _ in $(seq 100); do
    target=$(grep -oE "whep\+http://[a-z0-9.:/]+" /run/stage || true)
    [ -z "$target" ] || break
    sleep 0.1
  done
  throng view "$target" -n 3 --every 100ms --for 5s --plain --output /run/played'

tried() { # INSTALL REMOVE: commands that get the package as $package
  local before after
  before=$(listing)
  "$1" && inside "$play" && "$2" || return
  after=$(listing)
  diff <(echo "$before") <(echo "$after") || {
    echo "${package##*/} leaves these files" >&2; return 1
  }
  echo "${package##*/}: installed, played, removed; nothing is left"
}

install_deb() { cp "$package" "$root/tmp/" && inside "dpkg --install /tmp/${package##*/}"; }
remove_deb() { inside "dpkg --purge throng"; }

# The root's libraries are dpkg's, of which rpm knows nothing: what it would ask for is looked at.
rpm=(rpm --root "$root" --dbpath /var/lib/rpm --force-debian)
install_rpm() {
  local needs
  needs=$(rpm -qp --requires "$package" |
    grep -vE '^(lib(c|m|gcc_s)\.so\.|ld-linux|rtld\(|rpmlib\(|/bin/sh$)' || true)
  [[ -z $needs ]] || { echo "the .rpm needs more than glibc: $needs" >&2; return 1; }
  "${rpm[@]}" --install --nodeps "$package"
}
remove_rpm() { "${rpm[@]}" --erase --nodeps throng; }

install_tarball() {
  local folder=${package##*/}
  folder=/opt/${folder%.tar.xz}
  tar -C "$root/opt" --no-same-owner -xf "$package" &&
    ln -s "$folder/throng" "$root/usr/local/bin/throng"
}
remove_tarball() { rm -r "$root"/opt/throng-* "$root/usr/local/bin/throng"; }

one() { # KIND FILE
  package=$2
  step "$1" tried "install_$1" "remove_$1"
}

(cd "$packages" && sha256sum --check --quiet SHA256SUMS)
step "Debian 12" debian
one deb "$packages"/throng_*.deb
one rpm "$packages"/throng-*.rpm
one tarball "$packages"/throng-*.tar.xz
