#!/bin/sh
# Janus with a mountpoint that FFmpeg feeds: janus-mountpoint.sh FOLDER, which has the configuration
# of Janus.
set -eu
dir=$1
quiet="-hide_banner -loglevel error -nostdin"
# Encoded once: while viewers are there, FFmpeg only sends. A later viewer gets the parameter sets
# with each key frame.
# shellcheck disable=SC2086
ffmpeg $quiet -f lavfi -i testsrc2=s=1280x720:r=30:d=10 -c:v libx264 -preset ultrafast \
  -tune zerolatency -profile:v baseline \
  -pix_fmt yuv420p -g 30 -b:v 2700k -x264-params repeat-headers=1 "$dir/clip.mkv"
# shellcheck disable=SC2086
ffmpeg $quiet -re -stream_loop -1 -i "$dir/clip.mkv" -c copy -payload_type 100 \
  -f rtp 'rtp://127.0.0.1:5004?pkt_size=1200' > /dev/null &
exec janus -F "$dir"
