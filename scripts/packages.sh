#!/usr/bin/env bash
# Makes what a release consists of, and tries each part of it in a minimal Debian 12: a tarball, a
# .deb and an .rpm of the same files, their checksums, and the program's symbols.
#   scripts/packages.sh [BINARY]       into target/packages; without BINARY it is built
#                                      (--profile dist)
# dpkg-deb and rpmbuild pack a folder as it is: no packer has to be built, and none says the files
# once more. As root it is tried too.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh
# A step is a shell of its own, in which each command counts: "set -e" does not hold within `step`.
set -a
strictly() { bash -euo pipefail -c "$1"; }

binary=${1:-}
most_bytes=20000000
version=$(sed -nE '/^\[workspace.package\]/,/^$/s/^version = "(.*)"$/\1/p' Cargo.toml)
repository=$(sed -nE 's/^repository = "(.*)"$/\1/p' Cargo.toml)
about="Load generator and capacity finder for streaming media servers"
machine=$(uname -m)
case $machine in
  x86_64) debian_machine=amd64 ;;
  aarch64) debian_machine=arm64 ;;
  *) debian_machine=$machine ;;
esac
release=throng-$version-$machine-linux
out=${CARGO_TARGET_DIR:-target}/packages
tree=$out/work/tree
# The same commit, toolchain and tools give the same bytes.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)

# The files as they lie in a system, and beside them those of the tarball, which has no service: its
# program is not in /usr/bin.
files() {
  local work=$out/work flat=$out/work/$release share=$tree/usr/share
  mkdir -p "$flat"/{completions,man} "$tree"/usr/{bin,lib/systemd/system} \
    "$share"/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d,man/man1,doc/throng}
  strip -o "$flat/throng" "$binary"
  # By this name and its checksum a debugger finds the symbols.
  objcopy --only-keep-debug "$binary" "$work/$release.debug"
  objcopy --add-gnu-debuglink="$work/$release.debug" "$flat/throng"
  "$flat/throng" completions bash >"$flat/completions/throng.bash"
  "$flat/throng" completions zsh >"$flat/completions/_throng"
  "$flat/throng" completions fish >"$flat/completions/throng.fish"
  "$flat/throng" man "$flat/man"
  scripts/third_party.py "$machine-unknown-linux-gnu" "$flat"
  cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$flat/"

  cp "$flat/throng" "$tree/usr/bin/"
  cp deploy/systemd/throng-watch.service "$tree/usr/lib/systemd/system/"
  cp "$flat/completions/throng.bash" "$share/bash-completion/completions/throng"
  cp "$flat/completions/_throng" "$share/zsh/vendor-completions/"
  cp "$flat/completions/throng.fish" "$share/fish/vendor_completions.d/"
  cp "$flat"/man/*.1 "$share/man/man1/"
  cp "$flat"/{CHANGELOG.md,LICENSE-MIT,LICENSE-APACHE,THIRD-PARTY.txt,throng.cdx.json} \
    "$share/doc/throng/"
  {
    echo "throng: MIT OR Apache-2.0. The crates in it: THIRD-PARTY.txt.gz."; echo; cat LICENSE-MIT
  } >"$share/doc/throng/copyright"
  gzip -9n "$share"/man/man1/*.1 "$share"/doc/throng/{CHANGELOG.md,THIRD-PARTY.txt,throng.cdx.json}
  chmod -R u=rwX,go=rX "$flat" "$tree"
  find "$flat" "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# xz, as gzip leaves the tarball above what it may have.
tarball() {
  tar -C "$out/work" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$release" |
    xz -9 >"$out/$release.tar.xz"
}
symbols() { xz -6 -c "$out/work/$release.debug" >"$out/$release.debug.xz"; }

deb() {
  local root=$out/work/deb glibc
  glibc=$(readelf -VW "$tree/usr/bin/throng" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)
  cp -a "$tree" "$root"
  mkdir "$root/DEBIAN"
  install -m 755 deploy/packages/before-removal.sh "$root/DEBIAN/prerm"
  cat >"$root/DEBIAN/control" <<END
Package: throng
Version: $version
Architecture: $debian_machine
Maintainer: the throng authors
Homepage: $repository
Section: net
Priority: optional
Installed-Size: $(du -sk --apparent-size "$tree" | cut -f1)
Depends: libc6 (>= ${glibc#GLIBC_}), libgcc-s1
Description: $about
 throng finds how many viewers or participants a media server serves well,
 names what limits it, and recommends a change.
END
  dpkg-deb --root-owner-group -Zxz -z9 --build "$root" "$out/throng_${version}_$debian_machine.deb"
}

rpm_package() {
  local top
  top=$(realpath "$out/work/rpm")
  rpmbuild -bb --quiet --target "$machine-linux" --define "_topdir $top" \
    --define "tree $(realpath "$tree")" \
    --define "wanted_version $version" --define "about $about" --define "url $repository" \
    --define "before_removal $PWD/deploy/packages/before-removal.sh" \
    --define "_build_id_links none" --define "debug_package %{nil}" \
    --define "_binary_payload w9.xzdio" --define "_buildhost throng" \
    --define "__os_install_post %{nil}" \
    --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
    deploy/packages/throng.spec
  cp "$top"/RPMS/*/throng-*.rpm "$out/"
}

checksums() {
  cd "$out" && sha256sum throng*.{tar.xz,deb,rpm,debug.xz} >SHA256SUMS && cat SHA256SUMS
}

sizes() {
  local package status=0
  for package in "$out"/throng*.{tar.xz,deb,rpm}; do
    printf '%12d bytes  %s\n' "$(stat -c %s "$package")" "${package##*/}"
    [[ $(stat -c %s "$package") -le $most_bytes ]] || {
      echo "that is more than $most_bytes" >&2; status=1
    }
  done
  return $status
}

service() {
  command -v systemd-analyze >/dev/null || {
    echo "SKIPPED: the unit is not judged, there is no systemd-analyze"; return
  }
  systemd-analyze security --offline=true --threshold=30 \
    --no-pager deploy/systemd/throng-watch.service | tail -1
}

rm -rf "$out"
scripts/setup.sh packages
if [[ -z $binary ]]; then
  step "the program (--profile dist)" cargo build --profile dist --locked -p throng-cli
  binary=${CARGO_TARGET_DIR:-target}/dist/throng
fi
readelf -h "$binary" >/dev/null || { echo "$binary is no program" >&2; exit 1; }
step "files" strictly files
step "tarball" strictly tarball
step "symbols" strictly symbols
step "deb" strictly deb
step "rpm" strictly rpm_package
step "checksums" strictly checksums
rm -rf "$out/work"
step "sizes" strictly sizes
step "service" strictly service
if [[ $(id -u) -eq 0 ]]; then
  scripts/try-packages.sh "$out"
else
  echo "SKIPPED: the packages are not tried: only root may"
fi
