#!/usr/bin/env bash
# Fetches axe-core, by which a test judges the pages (crates/cli/tests/e2e/axe.rs), once, and keeps
# it in ~/.cache/throng. Only tests use it; its licence is MPL-2.0.
set -euo pipefail

version=4.14.1
checksum=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
kept=${XDG_CACHE_HOME:-$HOME/.cache}/throng/axe.min.js
is_it() { sha256sum --check --status <<<"$checksum  $1"; }
if [[ -e $kept ]] && is_it "$kept"; then exit 0; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "Fetching axe-core $version"
npm pack --loglevel=error --pack-destination "$work" "axe-core@$version" >/dev/null
tar -xzf "$work/axe-core-$version.tgz" -C "$work" package/axe.min.js
is_it "$work/package/axe.min.js" || {
  echo "axe-core $version has another checksum than when it was chosen" >&2
  exit 1
}
mkdir -p "$(dirname "$kept")"
mv "$work/package/axe.min.js" "$kept"
