#!/usr/bin/env bash
# Runs the two commands of the README as on a new machine: a minimal Debian 12 in a folder, with git, make and Rust.
# What needs something that was once installed by hand fails here. As root, with debootstrap.
#   scripts/fresh.sh [COMMAND]...      by default "make demo" and "make test"; the commits of this checkout are tried
# Debian and the package registries are reached as from this host: its settings for them, and certificates, are copied.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh
[[ $(id -u) -eq 0 ]] || { echo "scripts/fresh.sh makes a root folder and mounts: run it as root" >&2; exit 1; }
commands=("$@")
[[ $# -gt 0 ]] || commands=("make demo" "make test")
PATH=$PATH:/usr/sbin:/sbin
root=$(mktemp -d /var/tmp/throng-fresh-XXXXXX)
# All mounts are in a namespace that is gone by then.
trap 'rm -rf --one-file-system "$root"; at_end' EXIT

debian() {
  command -v debootstrap >/dev/null || apt-get install -y -qq --no-install-recommends debootstrap >/dev/null || return
  local mirror
  mirror=$(sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb (\[[^]]*\] )?([^ ]+) .*/\2/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null | head -1)
  debootstrap --variant=minbase --include=ca-certificates,curl,git,make bookworm "$root" "${mirror:-http://deb.debian.org/debian}" \
    >"$root.log" 2>&1 || { tail -20 "$root.log"; return 1; }
  rm -f "$root.log"
  rm -f "$root/etc/apt/sources.list"
  cp -rL /etc/apt/apt.conf.d /etc/apt/auth.conf.d /etc/apt/sources.list.d "$root/etc/apt/"
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  # From these a package that is installed later makes that file anew.
  cp -rL /usr/local/share/ca-certificates "$root/usr/local/share/"
  local settings
  for settings in /etc/apt/sources.list /etc/pip.conf /etc/npmrc ~/.npmrc ~/.config/pip ~/.cargo/config.toml; do
    [[ ! -e $settings ]] || { mkdir -p "$root/$(dirname "$settings")" && cp -rL "$settings" "$root/$(dirname "$settings")/"; }
  done
}

# Within the new root, with the variables of this host that say how registries are reached.
inside() { # COMMAND
  local kept
  mapfile -t kept < <(env | grep -E '^([a-z]+_proxy|[A-Z]+_PROXY|PIP_|NPM_CONFIG_|GO(PROXY|SUMDB|NOSUMDB)|CARGO_(REGISTR|NET|HTTP)|SSL_CERT_)[A-Z_a-z]*=' || true)
  root=$root unshare --mount --pid --fork --kill-child bash -euc '
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    exec chroot "$root" env -i "$@"' - \
    "${kept[@]}" HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 \
    PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c "cd; $1"
}

rust() {
  inside 'curl -fsS --max-time 60 --proto =https -o rustup.sh https://sh.rustup.rs && sh rustup.sh -y' && return
  echo "rustup cannot be reached from here: the toolchain of this host is copied"
  local sysroot
  sysroot=$(rustc --print sysroot)
  cp -a "$sysroot"/bin "$sysroot"/lib "$root/usr/local/"
  [[ ! -d $sysroot/libexec ]] || cp -a "$sysroot/libexec" "$root/usr/local/"
}

step "Debian 12" debian
step "Rust" rust
step "clone" git clone --quiet --no-local . "$root/root/throng"
for command in "${commands[@]}"; do
  step "$command" inside "cd throng && $command"
done
