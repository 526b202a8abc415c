# Sourced by the scripts that build a program from Go modules, once, and keep it in
# ~/.cache/throng/bin.
#   install_once NAME VERSION PACKAGE   builds the program of a package as its module is published,
#                                       and keeps it, unless that version is there
#   is_kept NAME VERSION                whether that version is there
#   keep FILE NAME VERSION              moves a program there
#   find_go PROGRAM WORK                sets `go` to a Go of 1.26 or newer, all of whose files are
#                                       in the folder WORK. Debian 12's own Go is too old and only
#                                       fetches a newer one, as a module.
go_version=1.26.8
kept=${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin

install_once() {
  local name=$1 version=$2 package=$3
  ! is_kept "$name" "$version" || return 0
  work=$(mktemp -d)
  trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
  find_go "$name" "$work"
  echo "Building $name $version (once, a few minutes)"
  "$go" install "$package@v$version"
  keep "$work/bin/$(basename "$package")" "$name" "$version"
}

is_kept() { [[ -x $kept/$1-$2 ]] && call_plainly "$1" "$2"; }

keep() {
  local file=$1 program=$kept/$2-$3
  mkdir -p "$kept"
  # In the folder first: who looks meanwhile finds the whole file or none.
  mv "$file" "$program.$$"
  mv "$program.$$" "$program"
  call_plainly "$2" "$3"
  echo "$2 $3 is at $program"
}

# The plain name is for users with the folder in PATH, such as scripts/test.sh, and for those who
# need no certain version. Where it is right it is left alone: somebody may be starting it.
call_plainly() { # NAME VERSION
  [[ $kept/$1 -ef $kept/$1-$2 ]] || ln -sf "$1-$2" "$kept/$1"
}

find_go() {
  local program=$1 work=$2 minor module dir
  go=$(PATH=$PATH:/usr/local/go/bin:/usr/lib/go/bin command -v go || true)
  [[ -n $go ]] || { echo "$program is not built: no Go (apt install golang-go)" >&2; exit 1; }
  export GOPATH=$work/path GOCACHE=$work/cache GOBIN=$work/bin
  export GOFLAGS=-buildvcs=false GOTOOLCHAIN=local
  minor=$("$go" env GOVERSION | sed -E 's/^go1\.([0-9]+).*/\1/')
  [[ $minor -lt 26 ]] || return 0
  echo "Fetching Go $go_version (this one is $("$go" env GOVERSION))"
  module=golang.org/toolchain@v0.0.1-go$go_version.$("$go" env GOOS)-$("$go" env GOARCH)
  dir=$(cd "$work" && "$go" mod download -json "$module" |
    sed -nE 's/^\s*"Dir": "(.*)",?$/\1/p') || dir=
  [[ -n $dir ]] ||
    { echo "$program is not built: Go $go_version cannot be fetched" >&2; exit 1; }
  chmod -R u+x "$dir/bin" "$dir/pkg/tool"
  go=$dir/bin/go
  export GOROOT=$dir
}
