#!/usr/bin/env bash
# Runs the two commands of the README as on a new machine: a minimal Debian 12 in a folder, with
# git, make and Rust. What needs something that was once installed by hand fails here. As root, with
# debootstrap.
#   scripts/fresh.sh [COMMAND]...      by default "make demo" and "make test"; the commits of this
#                                      checkout are tried
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh
commands=("$@")
[[ $# -gt 0 ]] || commands=("make demo" "make test")
source scripts/root.sh

rust() {
  inside 'curl -fsS --max-time 60 --proto =https -o rustup.sh https://sh.rustup.rs && sh rustup.sh -y' && return
  echo "rustup cannot be reached from here: the toolchain of this host is copied"
  local sysroot
  sysroot=$(rustc --print sysroot)
  cp -a "$sysroot"/bin "$sysroot"/lib "$root/usr/local/"
  [[ ! -d $sysroot/libexec ]] || cp -a "$sysroot/libexec" "$root/usr/local/"
}

step "Debian 12" debian ca-certificates curl git make
step "Rust" rust
step "clone" git clone --quiet --no-local . "$root/root/throng"
for command in "${commands[@]}"; do
  step "$command" inside "cd throng && $command"
done
