#!/usr/bin/env bash
# Builds the LiveKit server that the tests start, once, and keeps it in ~/.cache/throng/bin. It has
# no Debian package; its Go module of this version builds unchanged, by Go 1.26 or newer.
set -euo pipefail
source "$(dirname "$0")/go.sh"
install_once livekit-server 1.13.5 github.com/livekit/livekit-server/cmd/server
