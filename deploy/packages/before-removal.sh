#!/bin/sh
# Run by dpkg ("remove" or "upgrade …") and rpm (how many versions stay) before files are removed:
# a service that was enabled leaves neither a process nor a link.
case "$1" in
  remove | 0) systemctl disable --now throng-watch.service >/dev/null 2>&1 || true ;;
esac
