#!/usr/bin/env bash
# Builds versitygw, the S3 server of examples/live-stand and examples/evening, which a test starts,
# once, and keeps it in ~/.cache/throng/bin. It has no Debian package; its Go module of this version
# builds unchanged, by Go 1.25 or newer.
set -euo pipefail
source "$(dirname "$0")/go.sh"
install_once versitygw 1.8.0 github.com/versity/versitygw/cmd/versitygw
