#!/bin/sh
# Makes the stage's test card again: ffmpeg with libx264, libvpx and libopus, and the DejaVu font. The results are
# committed, so that a build needs none of these. Every clip is a whole number of GOPs and of Opus frames, so that it loops.
set -eu
cd "$(dirname "$0")"

font=/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf
seconds=3

card() { # size, fps, font size
    echo "testsrc2=size=$1:rate=$2:duration=$seconds,drawtext=fontfile=$font:fontsize=$3:fontcolor=white:box=1:boxcolor=black@0.7:boxborderw=6:x=(w-tw)/2:y=h-th-12:text='throng stage  frame %{frame_num}  %{pts\\:hms}'"
}

h264() { # size, fps, bits/s, font size, file
    ffmpeg -hide_banner -loglevel error -y -f lavfi -i "$(card "$1" "$2" "$4")" -pix_fmt yuv420p \
        -c:v libx264 -profile:v baseline -preset slow -threads 1 -bf 0 -refs 1 -g "$2" -keyint_min "$2" -sc_threshold 0 \
        -b:v "$3" -maxrate "$3" -bufsize "$3" -x264-params "repeat-headers=1:aud=0:nal-hrd=none:sliced-threads=0:slices=1" \
        -bsf:v "filter_units=remove_types=6" -f h264 "$5"
}

vp8() { # size, fps, bits/s, font size, file
    ffmpeg -hide_banner -loglevel error -y -f lavfi -i "$(card "$1" "$2" "$4")" -pix_fmt yuv420p \
        -c:v libvpx -quality good -cpu-used 1 -threads 1 -lag-in-frames 0 -auto-alt-ref 0 -error-resilient 0 \
        -g "$2" -keyint_min "$2" -b:v "$3" -minrate "$3" -maxrate "$3" -bufsize "$3" -fflags +bitexact -f ivf "$5"
}

h264 640x360 30 1000k 22 card-640x360-30.h264
vp8  640x360 30 1000k 22 card-640x360-30.ivf
h264 320x180 15 90k   12 card-320x180-15.h264
vp8  320x180 15 90k   12 card-320x180-15.ivf

# Two tones that beat once a second, so that an ear notices a gap.
ffmpeg -hide_banner -loglevel error -y -f lavfi -i "sine=frequency=440:sample_rate=48000:duration=$seconds" \
    -f lavfi -i "sine=frequency=441:sample_rate=48000:duration=$seconds" \
    -filter_complex "[0:a][1:a]amix=inputs=2,volume=0.5" -ac 1 \
    -c:a libopus -b:a 32k -vbr off -frame_duration 20 -application audio -fflags +bitexact -f ogg card.opus.ogg

ls -l card*
