#!/bin/sh
# Makes the test card again: ffmpeg with libx264, libvpx and libopus, and the DejaVu font. The
# results are committed, so that a build needs none of these. Every clip is three seconds, a whole
# number of GOPs and of Opus frames: it loops.
#
# The strip at the top says the frame's number to a machine that sees the picture: twelve columns,
# the first and the last white, then eight bits of the number (the highest first), one that is
# black, and the parity of the bits.
set -eu
cd "$(dirname "$0")"

font=/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf
seconds=3

box() { # column, enable
    printf ",drawbox=x=iw*%s/12:y=0:w=iw/12:h=ih/9:color=white:t=fill:enable='%s'" "$1" "$2"
}

strip() {
    printf ",drawbox=x=0:y=0:w=iw:h=ih/9:color=black:t=fill"
    box 0 1
    parity=""
    for bit in 7 6 5 4 3 2 1 0; do
        value="mod(floor(n/$((1 << bit)))\\,2)"
        box $((8 - bit)) "$value"
        parity="$parity+$value"
    done
    box 10 "mod(0$parity\\,2)"
    box 11 1
}

card() { # size, fps, font size
    printf "testsrc2=size=%s:rate=%s:duration=%s" "$1" "$2" "$seconds"
    printf ",drawtext=fontfile=%s:fontsize=%s:fontcolor=white:box=1:boxcolor=black@0.7:boxborderw=4:x=(w-tw)/2:y=h-th-8:text='throng  frame %%{frame_num}  %%{pts\\:hms}'" "$font" "$3"
    strip
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

rung() { # name, size, fps, bits/s, font size
    h264 "$2" "$3" "$4" "$5" "card-$1.h264"
    vp8  "$2" "$3" "$4" "$5" "card-$1.ivf"
}

rung 144p 256x144  15 64k   10
rung 180p 320x180  15 90k   12
rung 240p 426x240  20 256k  14
rung 360p 640x360  30 1000k 20
rung 720p 1280x720 30 2500k 36
rung 1080p 1920x1080 30 4500k 54

# Two tones that beat once a second, so that an ear notices a gap.
ffmpeg -hide_banner -loglevel error -y -f lavfi -i "sine=frequency=440:sample_rate=48000:duration=$seconds" \
    -f lavfi -i "sine=frequency=441:sample_rate=48000:duration=$seconds" \
    -filter_complex "[0:a][1:a]amix=inputs=2,volume=0.5" -ac 1 \
    -c:a libopus -b:a 32k -vbr off -frame_duration 20 -application audio -fflags +bitexact -f ogg tone.opus.ogg

# The same in AAC.
ffmpeg -hide_banner -loglevel error -y -f lavfi -i "sine=frequency=440:sample_rate=48000:duration=$seconds" \
    -f lavfi -i "sine=frequency=441:sample_rate=48000:duration=$seconds" \
    -filter_complex "[0:a][1:a]amix=inputs=2,volume=0.5" -ac 1 -c:a aac -b:a 64k -fflags +bitexact -f adts tone.aac

# Noise in the band of speech, in syllables: like a microphone with a speaker, at a varying rate.
ffmpeg -hide_banner -loglevel error -y -f lavfi -i "anoisesrc=color=pink:sample_rate=48000:duration=$seconds:seed=7:amplitude=0.6" \
    -af "highpass=f=200,lowpass=f=3400,volume='0.15+0.85*abs(sin(PI*4*t))*(0.6+0.4*sin(2*PI*t/1.5))':eval=frame" -ac 1 \
    -c:a libopus -b:a 32k -vbr on -frame_duration 20 -application voip -fflags +bitexact -f ogg speech.opus.ogg

ls -l card* ./*.ogg ./*.aac
