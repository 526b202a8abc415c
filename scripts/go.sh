# Sourced by the scripts that build a program from Go modules, once.
#   find_go PROGRAM WORK   sets `go` to a Go of 1.26 or newer, all of whose files are in the folder
#                          WORK. Debian 12's own Go is too old and only fetches a newer one, as a
#                          module.
go_version=1.26.8

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
