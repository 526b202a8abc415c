#!/usr/bin/env bash
# Builds Helm, which installs the chart of scripts/kubernetes_proof.sh, once, and keeps it in
# ~/.cache/throng/bin. It has no Debian package; its Go module of this version builds unchanged, by
# Go 1.24 or newer.
set -euo pipefail
source "$(dirname "$0")/go.sh"
install_once helm 3.19.0 helm.sh/helm/v3/cmd/helm
