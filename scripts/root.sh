# Sourced by the scripts that try something as on a new machine: a minimal Debian 12 in the folder
# $root, which is gone at the end. As root, with debootstrap; after scripts/steps.sh.
# Debian and the package registries are reached as from this host: its settings for them, and
# certificates, are copied.
[[ $(id -u) -eq 0 ]] || { echo "$0 makes a root folder and mounts: run it as root" >&2; exit 1; }
PATH=$PATH:/usr/sbin:/sbin
root=$(mktemp -d /var/tmp/throng-fresh-XXXXXX)
# All mounts are in a namespace that is gone by then.
trap 'rm -rf --one-file-system "$root"; at_end' EXIT

# The root, with these packages and what every Debian has.
debian() { # PACKAGE...
  command -v debootstrap >/dev/null ||
    apt-get install -y -qq --no-install-recommends debootstrap >/dev/null || return
  local mirror packages
  packages=$(IFS=,; echo "$*")
  mirror=$(sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb (\[[^]]*\] )?([^ ]+) .*/\2/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null | head -1)
  debootstrap --variant=minbase ${packages:+--include="$packages"} bookworm "$root" \
    "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1 || {
      tail -20 "$root.log"; return 1
    }
  rm -f "$root.log" "$root/etc/apt/sources.list"
  cp -rL /etc/apt/apt.conf.d /etc/apt/sources.list.d "$root/etc/apt/" || return
  cp /etc/resolv.conf /etc/hosts "$root/etc/" || return
  mkdir -p "$root/etc/ssl/certs" || return
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" || return
  # Made for its owner alone, but the root of a machine is anybody's.
  chmod 755 "$root" || return
  # What a host may lack. From /usr/local/share/ca-certificates a package that is installed later
  # makes ca-certificates.crt anew.
  local settings
  for settings in /usr/local/share/ca-certificates /etc/apt/{auth.conf.d,sources.list} \
    /etc/pip.conf /etc/npmrc ~/.npmrc ~/.config/pip ~/.cargo/config.toml; do
    [[ ! -e $settings ]] || {
      mkdir -p "$root/$(dirname "$settings")" &&
        cp -rL "$settings" "$root/$(dirname "$settings")/"
    } || return
  done
}

# Within the new root, with the variables of this host that say how registries are reached.
inside() { # COMMAND
  local kept
  mapfile -t kept < <(env |
    grep -E '^([a-z]+_proxy|[A-Z]+_PROXY|PIP_|NPM_CONFIG_|GO(PROXY|SUMDB|NOSUMDB)|CARGO_(REGISTR|NET|HTTP)|SSL_CERT_)[A-Z_a-z]*=' || true)
  root=$root unshare --mount --pid --fork --kill-child bash -euc '
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    exec chroot "$root" env -i "$@"' - \
    "${kept[@]}" HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 \
    PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash \
    -c "cd; $1"
}
