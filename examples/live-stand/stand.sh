#!/usr/bin/env bash
# A live stream with real parts on this machine: encoder, RTMP relay, packager, three servers of its
# segments.
#   stand.sh start [--low-latency] [DIR]    starts what does not run yet, waits until each serves
#   stand.sh stop [DIR]                     stops everything; the logs stay in DIR
#   stand.sh status [DIR]                   each part, its CPU time and memory; 3 if one has ended
# DIR is ${TMPDIR:-/tmp}/throng-live-stand. THRONG_STAND_PORT (18400) is the first of seven ports on
# 127.0.0.1. THRONG_STAND_SLOW (100k) is the rate of each response below /slow/, bytes per second.
# Debian: ffmpeg nginx libnginx-mod-rtmp caddy openssl curl python3. Built when they are missing,
# once: versitygw (Go), and with --low-latency multimux (Rust, ten minutes); both stay in
# ~/.cache/throng/bin.
set -euo pipefail
PATH=$PATH:/usr/sbin:/usr/local/go/bin:${CARGO_HOME:-$HOME/.cargo}/bin

usage() { sed -n '4,6s/^#   //p' "$0" >&2; exit 2; }
action=${1:-} low_latency=no dir=
[[ $# -gt 0 ]] && shift
for argument in "$@"; do
  case $argument in
    --low-latency) low_latency=yes ;;
    -*) usage ;;
    *) [[ -z $dir ]] || usage; dir=$argument ;;
  esac
done
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(realpath -m "${dir:-${TMPDIR:-/tmp}/throng-live-stand}")
[[ $dir =~ ^[A-Za-z0-9._/-]+$ ]] || {
  echo "$dir has characters that the configuration files cannot have" >&2; exit 2
}

first=${THRONG_STAND_PORT:-18400}
http=$first https=$((first + 1)) caddy=$((first + 2)) s3=$((first + 3))
rtmp=$((first + 4)) origin=$((first + 5)) origin_rtmp=$((first + 6))
kept=${XDG_CACHE_HOME:-$HOME/.cache}/throng
multimux_version=0.12.0
module=${THRONG_STAND_RTMP_MODULE:-/usr/lib/nginx/modules/ngx_rtmp_module.so}
stream=rtmp://127.0.0.1:$rtmp/live/stand
# What a test server that is built on this one (examples/evening) has otherwise: the picture, the
# names of the parts, readers before what they read (an ffmpeg that waits for data does not heed the
# signal), and more values of its templates.
width=640 height=360 frames=25 rate=800k gop=25 letters=34
parts=(upload feed packager encoder s3 origin caddy nginx) values=()

# --- Parts: a process group each. Its file has the pid and the start time, because pids are used
# again.

started_at() { # PID: fails if it has ended
  local stat field
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  # What follows the name, which may have spaces: state, parent, group, session, …
  read -ra field <<<"${stat##*) }"
  [[ ${field[0]} != Z ]] && echo "${field[19]}"
}

pid_of() { # NAME: fails if the part does not run
  local pid start
  [[ -e $dir/parts/$1 ]] && read -r pid start <"$dir/parts/$1" &&
    [[ $(started_at "$pid") == "$start" ]] && echo "$pid"
}

part() { # NAME COMMAND...
  local name=$1; shift
  pid_of "$name" >/dev/null && return 0
  setsid "$@" </dev/null >"$dir/logs/$name.log" 2>&1 &
  disown
  echo "$! $(started_at $!)" >"$dir/parts/$name"
}

end() { # NAME
  local pid; pid=$(pid_of "$1") || { rm -f "$dir/parts/$1"; return 0; }
  kill -- "-$pid" 2>/dev/null || true
  for _ in {1..50}; do kill -0 -- "-$pid" 2>/dev/null || break; sleep 0.1; done
  kill -KILL -- "-$pid" 2>/dev/null || true
  rm -f "$dir/parts/$1"
}

end_all() {
  local name
  for name in "${parts[@]}"; do end "$name"; done
  rm -rf "$dir/www" "$dir/s3" "$dir/tmp" "$dir/parts"
}

wait_for() { # NAME WHAT COMMAND...: polls for 20 s; an ended part is not waited for
  local name=$1 what=$2 until=$((SECONDS + 20)); shift 2
  until "$@" >/dev/null 2>&1; do
    if ! pid_of "$name" >/dev/null || ((SECONDS >= until)); then
      pid_of "$name" >/dev/null && what="$what within 20 s" || what="$what: it ended"
      echo "$name: no $what. Its log, $dir/logs/$name.log, ends with:" >&2
      tail -n 5 "$dir/logs/$name.log" >&2
      end_all
      exit 1
    fi
    sleep 0.1
  done
}

# --- Files

fill() { # TEMPLATE FILE
  local text; text=$(<"$here/$1")
  local name value
  while read -r name value; do text=${text//"@$name@"/"$value"}; done <<END
DIR $dir
HTTP $http
HTTPS $https
CADDY $caddy
RTMP $rtmp
ORIGIN $origin
ORIGIN_RTMP $origin_rtmp
MODULE $module
SLOW ${THRONG_STAND_SLOW:-100k}
USER $([[ $(id -u) -ne 0 ]] || echo "user root;")
STATUS $([[ ! -e $module ]] || echo "location = /rtmp { access_log off; rtmp_stat all; }")
$(printf '%s\n' ${values[@]+"${values[@]}"})
END
  printf '%s\n' "$text" >"$dir/conf/$2"
}

certificate() {
  openssl x509 -in "$dir/tls/cert.pem" -checkend 86400 -noout >/dev/null 2>&1 && return 0
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -keyout "$dir/tls/key.pem" \
    -out "$dir/tls/cert.pem" -days 30 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
    -addext basicConstraints=critical,CA:FALSE 2>/dev/null
}

# --- Programs without a Debian package

build_versitygw() {
  local log=$dir/logs/build-versitygw.log
  nice -n 19 "$here/../../scripts/versitygw.sh" 2>"$log" || {
    echo "no S3: $(tail -n 1 "$log") ($log)" >&2; return 1
  }
}

build_multimux() {
  [[ -x $kept/bin/multimux ]] && return 0
  command -v cargo >/dev/null || {
    echo "--low-latency: multimux is not built, there is no cargo" >&2; exit 1
  }
  echo "Building multimux $multimux_version (once, ten minutes)"
  # Without its lock file, which names a version that was withdrawn.
  local work; work=$(mktemp -d)
  CARGO_TARGET_DIR=$work nice -n 19 cargo install --quiet \
    --root "$kept" "multimux-cli@$multimux_version" \
    >"$dir/logs/build-multimux.log" 2>&1 ||
    echo "multimux cannot be built, see $dir/logs/build-multimux.log" >&2
  rm -rf "$work"
  [[ -x $kept/bin/multimux ]] || exit 1
}

# --- The stream

# What is seen and heard, as inputs of ffmpeg's `lavfi`.
sound=sine=frequency=440:beep_factor=2:sample_rate=48000
picture() {
  local font clock=
  font=$(fc-match -f '%{file}' monospace 2>/dev/null || true)
  # The time of day and the number of the frame, in the picture.
  [[ -e $font ]] &&
    clock=",drawtext=fontfile=$font:text='%{localtime\:%T} %{n}':x=16:y=h-56*h/360:fontsize=$letters:fontcolor=white"
  echo "testsrc2=size=${width}x$height:rate=$frames${clock:+$clock:box=1:boxcolor=black}"
}

encode() {
  part encoder ffmpeg -hide_banner -loglevel warning -nostdin \
    -re -f lavfi -i "$(picture)" -re -f lavfi -i "$sound" \
    -c:v libx264 -preset ultrafast -tune zerolatency -threads 1 -pix_fmt yuv420p -g $gop \
    -keyint_min $gop -sc_threshold 0 \
    -b:v $rate -maxrate $rate -bufsize $rate -c:a aac -b:a 64k -ac 2 -f flv "$stream"
}

# The upper rendition is the encoder's video as it is, the lower one is encoded here with the same
# key frames. All formats are written from the same packets; HLS with the options that PeerTube
# uses.
package() { # [listen]
  local www=$dir/www hls ts fmp4 dash
  hls='f=hls:hls_time=4:hls_list_size=15:hls_flags=delete_segments+independent_segments+program_date_time'
  hls+=':master_pl_name=master.m3u8:var_stream_map=v\\:0,a\\:0 v\\:1,a\\:1'
  ts="[$hls:hls_segment_filename=$www/live/%v-%06d.ts]$www/live/%v.m3u8"
  fmp4="[$hls:hls_segment_type=fmp4:hls_fmp4_init_filename=%v-init.mp4:hls_segment_filename=$www/fmp4/%v-%06d.m4s]$www/fmp4/%v.m3u8"
  dash="[select=\'v,1\':f=dash:seg_duration=4:window_size=15:extra_window_size=5:use_timeline=1"
  dash+=":adaptation_sets=id=0,streams=v id=1,streams=a]$www/dash/manifest.mpd"
  pid_of packager >/dev/null && return 0
  # Numbers begin anew, so nothing of an earlier stream may stay.
  end upload
  rm -rf "$www"
  mkdir -p "$www/live" "$www/fmp4" "$www/dash"
  # Annex B, so that ffmpeg finds out the CODECS of the copied video.
  part packager ffmpeg -hide_banner -loglevel warning -nostdin \
    ${1:+-listen 1} -fflags nobuffer -analyzeduration 2000000 -i "$stream" \
    -map 0:v -map 0:a -map 0:v -map 0:a -c:a copy -c:v:0 copy -bsf:v:0 h264_mp4toannexb \
    -c:v:1 libx264 -filter:v:1 scale=320:180 -preset:v:1 ultrafast -tune:v:1 zerolatency \
    -threads:v:1 1 \
    -force_key_frames:v:1 source -sc_threshold:v:1 0 -fps_mode:v:1 passthrough \
    -flags:v:1 +global_header \
    -b:v:1 250k -maxrate:v:1 250k -bufsize:v:1 250k \
    -f tee "$ts|$fmp4|$dash"
}

url() { curl --silent --show-error --fail --max-time 3 --cacert "$dir/tls/cert.pem" "$@"; }
shows() { local text=$1; shift; url "$@" | grep -q "$text"; }

start() {
  local program package=(ffmpeg:ffmpeg nginx:nginx caddy:caddy openssl:openssl curl:curl \
    python3:python3) missing=()
  for program in "${package[@]}"; do
    command -v "${program#*:}" >/dev/null || missing+=("${program%%:*}")
  done
  [[ ${#missing[@]} -eq 0 ]] || { echo "please install: ${missing[*]}" >&2; exit 1; }

  [[ $low_latency == no || -e $module ]] || {
    echo "--low-latency: please install libnginx-mod-rtmp" >&2; exit 1
  }

  mkdir -p "$dir"/{conf,logs,parts,tls,tmp}
  [[ $low_latency == no ]] || build_multimux
  local has_s3=no
  if build_versitygw; then has_s3=yes; fi
  certificate
  fill nginx.conf.in nginx.conf
  fill Caddyfile.in Caddyfile
  fill origin.json.in origin.json
  rm -f "$dir/conf/rtmp.conf"
  [[ ! -e $module ]] || fill rtmp.conf.in rtmp.conf

  # As the other logs, those of requests begin with the start.
  pid_of nginx >/dev/null || rm -f "$dir"/logs/*access.log
  part nginx nginx -p "$dir" -c "$dir/conf/nginx.conf" -e "$dir/logs/nginx.log"
  wait_for nginx "answer on port $http" url "http://127.0.0.1:$http/ready"
  wait_for nginx "answer on port $https" url "https://127.0.0.1:$https/ready"

  if [[ -e $module ]]; then
    encode
    wait_for encoder "stream at the relay" shows '<publishing/>' "http://127.0.0.1:$http/rtmp"
    package
  else
    # Without the relay the packager is the RTMP server, and of one stream only.
    echo "no RTMP relay (apt install libnginx-mod-rtmp): the encoder sends to the packager"
    package listen
    sleep 0.5
    encode
  fi

  part caddy env XDG_DATA_HOME="$dir/tmp" XDG_CONFIG_HOME="$dir/tmp" \
    caddy run --config "$dir/conf/Caddyfile" --adapter caddyfile
  if [[ $has_s3 == yes ]]; then
    mkdir -p "$dir/s3"
    part s3 env ROOT_ACCESS_KEY=stand ROOT_SECRET_KEY=stand-secret \
      "$kept/bin/versitygw" \
      --port "127.0.0.1:$s3" --health /ready --keep-alive --quiet \
      --access-log "$dir/logs/s3-access.log" posix "$dir/s3"
    wait_for s3 "answer on port $s3" url "http://127.0.0.1:$s3/ready"
  fi
  if [[ $low_latency == yes ]]; then
    part origin "$kept/bin/multimux" --config "$dir/conf/origin.json"
    wait_for origin "answer on port $origin" url "http://127.0.0.1:$origin/healthz"
    part feed ffmpeg -hide_banner -loglevel warning -nostdin \
      -fflags nobuffer -i "$stream" -c copy -f flv "rtmp://127.0.0.1:$origin_rtmp/live/stand"
  fi

  wait_for packager "segments" shows EXTINF "http://127.0.0.1:$http/live/1.m3u8"
  wait_for packager "segments" shows '<S ' "http://127.0.0.1:$http/dash/manifest.mpd"
  wait_for caddy "playlist on port $caddy" url "https://localhost:$caddy/live/master.m3u8"
  if pid_of s3 >/dev/null; then
    part upload env S3_ACCESS_KEY=stand S3_SECRET_KEY=stand-secret \
      python3 "$here/upload.py" "$dir/www/live" "http://127.0.0.1:$s3/stream/live"
    wait_for upload "playlist in the bucket" shows EXTINF "http://127.0.0.1:$s3/stream/live/1.m3u8"
  fi
  [[ $low_latency == no ]] ||
    wait_for feed "parts at the low-latency origin" shows EXT-X-PART: \
    "http://127.0.0.1:$origin/live/media.m3u8"

  urls
}

urls() {
  printf '%-24s %s\n' \
    "HLS, HTTP/1.1" "http://127.0.0.1:$http/live/master.m3u8" \
    "HLS, HTTP/2" "https://127.0.0.1:$https/live/master.m3u8" \
    "HLS, HTTP/1.1 to 3" "https://localhost:$caddy/live/master.m3u8" \
    "HLS in fMP4" "http://127.0.0.1:$http/fmp4/master.m3u8" \
    "DASH" "http://127.0.0.1:$http/dash/manifest.mpd"
  if pid_of s3 >/dev/null; then
    printf '%-24s %s\n' "HLS, S3" "http://127.0.0.1:$s3/stream/live/master.m3u8"
  fi
  if pid_of origin >/dev/null; then
    printf '%-24s %s\n' \
      "low-latency HLS" "http://127.0.0.1:$http/ll/master.m3u8" \
      "low-latency HLS, HTTP/2" "https://127.0.0.1:$https/ll/master.m3u8" \
      "low-latency HLS, to 3" "https://localhost:$caddy/ll/master.m3u8"
  fi
  if [[ -e $module ]]; then printf '%-24s %s\n' "RTMP" "$stream"; fi
  printf '%-24s %s\n' "certificate" "$dir/tls/cert.pem" "requests" "$dir/logs/access.log"
}

# CPU time and memory of all processes of a part, which are those of its session.
status() {
  local name pid uptime _ hertz ended=0 running=()
  [[ -d $dir/parts ]] && compgen -G "$dir/parts/*" >/dev/null || {
    echo "nothing runs in $dir"; exit 3
  }
  hertz=$(getconf CLK_TCK)
  read -r uptime _ </proc/uptime
  for name in "${parts[@]}"; do
    [[ -e $dir/parts/$name ]] || continue
    if pid=$(pid_of "$name"); then running+=("$name $pid $(started_at "$pid")")
    else echo "$name has ended, see $dir/logs/$name.log"; ended=3; fi
  done
  # Processes may end while they are listed.
  { cat /proc/[0-9]*/stat 2>/dev/null || true; } |
    awk -v parts="$(printf '%s\n' "${running[@]}")" -v hertz="$hertz" -v uptime="$uptime" '
    { sub(/^.*\) /, ""); ticks[$4] += $12 + $13; pages[$4] += $22 }
    END {
      count = split(parts, part, "\n")
      for (i = 1; i <= count; i++) {
        split(part[i], of, " ")
        cpu = ticks[of[2]] / hertz; age = uptime - of[3] / hertz; share = age > 0 ? 100 * cpu / age : 0
        printf "%-9s %6.0f s, %7.2f s of CPU time, %5.1f %% of a core, %4.0f MB\n", of[1], age, cpu, share, pages[of[2]] * 4096 / 1e6
        all += share
      }
      printf "all %37.1f %% of a core\n", all
    }'
  return $ended
}

[[ ${BASH_SOURCE[0]} == "$0" ]] || return 0
case $action in
  start) start ;;
  stop) end_all ;;
  status) status ;;
  *) usage ;;
esac
