#!/bin/sh
# The storage of a cell: the first COUNT files of a catalogue as movie-0, movie-1, … in FOLDER.
#   storage.sh up disk|tmpfs CATALOGUE COUNT FOLDER
#   storage.sh down FOLDER
# disk: an ext4 file system of its own on a loop device that passes reads on to the disk, with
# nothing of it in the page cache; [server] disk = … limits how fast the server reads it. tmpfs: the
# same files in memory.
# 69 (EX_UNAVAILABLE) tells throng that the cell cannot be run here.
set -eu

unavailable() { echo "$1" >&2; exit 69; }

# Before anything is mounted, and before its size is computed.
check() { # CATALOGUE COUNT
  [ -d "$1" ] || unavailable "no folder $1: make it by throng media make, or scripts/study.sh"
  found=$(find "$1" -name 'file-*' | wc -l)
  [ "$found" -ge "$2" ] || unavailable "$1 has $found files of $2: throng media make --count $2"
}

fill() { # CATALOGUE COUNT FOLDER
  number=0
  for file in "$1"/file-*; do
    [ "$number" -lt "$2" ] || break
    cp "$file" "$3/movie-$number.${file##*.}"
    number=$((number + 1))
  done
}

case ${1:-} in
  up)
    kind=$2 catalogue=$3 count=$4 folder=$5
    [ "$(id -u)" -eq 0 ] || unavailable "mounting needs root"
    check "$catalogue" "$count"
    mkdir -p "$folder"
    # What the files take, with room for the file system.
    kb=$(($(find "$catalogue" -name 'file-*' | sort | head -n "$count" | xargs -r du -kc |
      tail -n 1 | cut -f 1) * 5 / 4 + 32768))
    case $kind in
      tmpfs)
        mount -t tmpfs -o "size=${kb}k" tmpfs "$folder" || unavailable "tmpfs cannot be mounted"
        fill "$catalogue" "$count" "$folder"
        ;;
      disk)
        truncate -s "${kb}k" "$folder.img"
        mkfs.ext4 -q -F -m 0 "$folder.img"
        loop=$(losetup --direct-io=on -f --show "$folder.img") || unavailable "no loop device"
        mount "$loop" "$folder" || unavailable "$loop cannot be mounted"
        fill "$catalogue" "$count" "$folder"
        # A new mount has nothing in the page cache.
        umount "$folder"
        mount -o ro "$loop" "$folder"
        ;;
      *) echo "unknown storage $kind" >&2; exit 2 ;;
    esac
    ;;
  down)
    folder=$2
    ! mountpoint -q "$folder" || umount "$folder"
    for loop in $(losetup -j "$folder.img" -O NAME -n 2>/dev/null); do losetup -d "$loop"; done
    rm -f "$folder.img"
    ;;
  *)
    echo "usage: storage.sh up disk|tmpfs CATALOGUE COUNT FOLDER, storage.sh down FOLDER" >&2
    exit 2
    ;;
esac
