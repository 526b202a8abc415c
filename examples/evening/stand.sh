#!/usr/bin/env bash
# An evening on PeerTube with real parts on this machine: live-stand's encoder, relay and packager,
# nginx, and Node and Prosody as a PeerTube with the livechat plugin runs them.
#   stand.sh start [OPTION]... [DIR]           starts what does not run yet, waits until each serves
#      --version 5|6|8|9, --waiting, --recording, --early-hashes, --object-storage, --tiny
#   stand.sh state waiting|live|ended|recorded [DIR]
#                                              changes the live's state, and tells the viewers;
#                                              recorded: the page has a recording of ten minutes
#   stand.sh freeze|thaw PART [DIR]            a part, as prosody, that gets no CPU any more
#   stand.sh counters [DIR]                    what Node counted, as JSON
#   stand.sh take [DIR]                        what Node and nginx counted since the last take, as
#                                              JSON for compare.py, and counts anew
#   stand.sh stop [DIR]                        stops everything; the logs stay in DIR
#   stand.sh status [DIR]                      each part, its CPU time and memory, and operations of
#                                              the object storage by kind; 3 if a part has ended
# DIR is ${TMPDIR:-/tmp}/throng-evening. THRONG_STAND_PORT (18500) is the first of six ports on
# 127.0.0.1. Debian: ffmpeg nginx libnginx-mod-rtmp openssl curl prosody nodejs (20) npm. Packages
# of package.json are installed once, to ~/.cache/throng/evening; for --object-storage versitygw is
# built once (Go), to ~/.cache/throng/bin.
set -euo pipefail

explain() { sed -n '4,15s/^#   //p' "$0" >&2; exit 2; }
action=${1:-} peertube=8 state=live early= objects= tiny= dir= to= recorded=600
[[ $# -gt 0 ]] && shift
[[ $action != state ]] || {
  to=${1:-}; [[ $to =~ ^(waiting|live|ended|recorded)$ ]] || explain; shift
}
[[ $action != freeze && $action != thaw ]] || {
  to=${1:-}; [[ $to =~ ^[a-z0-9]+$ ]] || explain; shift
}
while [[ $# -gt 0 ]]; do
  case $1 in
    --version) peertube=${2:-}; [[ $peertube =~ ^[5689]$ ]] || explain; shift ;;
    --waiting) state=waiting ;;
    # Two minutes of it, for tests.
    --recording) state=recorded recorded=120 ;;
    --early-hashes) early=yes ;;
    --object-storage) objects=yes ;;
    --tiny) tiny=yes ;;
    -*) explain ;;
    *) [[ -z $dir ]] || explain; dir=$1 ;;
  esac
  shift
done
asked=$action
set -- "$asked" "${dir:-${TMPDIR:-/tmp}/throng-evening}"
export THRONG_STAND_PORT=${THRONG_STAND_PORT:-18500}
. "$(dirname "$0")/../live-stand/stand.sh"

live_stand=$here here=$(cd "$(dirname "$0")" && pwd)
node=$((first + 2)) prosody=$((first + 3)) s3=$((first + 5))
control=http://127.0.0.1:$node/stand
uuid=9f3c1d52-6a0b-4c7e-8a51-2f7d90c4be10 domain=localhost
width=426 height=240 rate=300k gop=50 letters=22 lower=256:144 lower_rate=150k
# Many browsers on a few cores: a picture that costs them nothing to decode.
[[ -z $tiny ]] ||
  width=160 height=90 frames=5 rate=60k gop=10 letters=12 lower=112:64 lower_rate=30k
parts=(packager peertube prosody encoder s3 nginx)
values=("NODE $node" "PROSODY $prosody" "DOMAIN $domain" "UUID $uuid" "HERE $here")

# What browsers load, below /client/.
client() {
  local from=$packages/node_modules to=$dir/client
  mkdir -p "$to"
  cp "$from/hls.js/dist/hls.mjs" \
    "$from/p2p-media-loader-core/dist/p2p-media-loader-core.es.min.js" \
    "$from/p2p-media-loader-hlsjs/dist/p2p-media-loader-hlsjs.es.min.js" \
    "$from/socket.io-client/dist/socket.io.esm.min.js" "$to/"
  [[ -e $to/conversejs ]] || cp -r "$from/converse.js/dist" "$to/conversejs"
  find "$to" -name '*.map' -delete
}

# The commands of packager and recorder, for Node to run: that of the packager as live-stand's, but
# HLS only and at PeerTube's priority; that of the recorder as PeerTube transcodes a replay or an
# upload, in the order of its playlist.
write_config() {
  local www=$dir/www/streaming-playlists/hls/$uuid
  DIR=$dir HERE=$here PACKAGES=$packages WWW=$www STREAM=$stream STATE=${state/recorded/waiting} EARLY=$early \
    VERSION=$peertube UUID=$uuid DOMAIN=$domain \
    HTTP=$http HTTPS=$https NODE=$node PROSODY=$prosody S3=${objects:+$s3} \
    HEIGHT=$height LOWER=$lower RATE=$lower_rate UPPER_RATE=$rate GOP=$gop \
    PICTURE=$(picture) SOUND=$sound RECORDED=$recorded python3 - >"$dir/conf/peertube.json" <<'END'
import json, os
e = os.environ
command = f"""nice -n 5 ffmpeg -hide_banner -loglevel warning -nostdin -fflags nobuffer -analyzeduration 2000000 -i {e["STREAM"]}
 -map 0:v -map 0:a -map 0:v -map 0:a -c:a copy -c:v:0 copy -bsf:v:0 h264_mp4toannexb -c:v:1 libx264 -filter:v:1 scale={e["LOWER"]} -preset:v:1 ultrafast
 -tune:v:1 zerolatency -threads:v:1 1 -force_key_frames:v:1 source -sc_threshold:v:1 0 -fps_mode:v:1 passthrough -flags:v:1 +global_header
 -b:v:1 {e["RATE"]} -maxrate:v:1 {e["RATE"]} -bufsize:v:1 {e["RATE"]}
 -hls_time 4 -hls_list_size 15 -hls_flags delete_segments+independent_segments+program_date_time
 -hls_segment_filename {e["WWW"]}/%v-%06d.ts -master_pl_name master.m3u8""".split()
command += ["-var_stream_map", "v:0,a:0 v:1,a:1", "-f", "hls", f"{e['WWW']}/%v.m3u8"]
recorder = ["nice", "-n", "15", "ffmpeg", "-hide_banner", "-loglevel", "warning", "-nostdin",
            "-f", "lavfi", "-i", e["PICTURE"], "-f", "lavfi", "-i", e["SOUND"]]
recorder += f"""-map 0:v -map 1:a -map 0:v -map 1:a -t {e["RECORDED"]} -c:a aac -b:a 64k -ac 2
 -c:v libx264 -preset ultrafast -threads 1 -flags:v +global_header -pix_fmt yuv420p
 -filter:v:0 scale={e["LOWER"]}
 -g {e["GOP"]} -keyint_min {e["GOP"]} -sc_threshold 0
 -b:v:0 {e["RATE"]} -maxrate:v:0 {e["RATE"]} -bufsize:v:0 {e["RATE"]}
 -b:v:1 {e["UPPER_RATE"]} -maxrate:v:1 {e["UPPER_RATE"]} -bufsize:v:1 {e["UPPER_RATE"]}
 -hls_time 4 -hls_list_size 0 -hls_playlist_type vod -hls_segment_type fmp4 -hls_flags single_file
 -hls_segment_filename {e["WWW"]}/recorded-%v-fragmented.mp4
 -master_pl_name recorded-master.m3u8""".split()
recorder += ["-var_stream_map", "v:0,a:0 v:1,a:1", "-f", "hls", f"{e['WWW']}/recorded-%v.m3u8"]
json.dump({
    "version": int(e["VERSION"]), "state": e["STATE"], "uuid": e["UUID"], "domain": e["DOMAIN"],
    "http": int(e["HTTP"]), "https": int(e["HTTPS"]), "port": int(e["NODE"]), "prosody": int(e["PROSODY"]),
    "objectStorage": {"port": int(e["S3"]), "bucket": "live", "access": "stand", "secret": "stand-secret"} if e["S3"] else None,
    "earlyHashes": bool(e["EARLY"]), "renditions": [{"height": int(e["HEIGHT"])}, {"height": int(e["LOWER"].split(":")[1])}],
    "here": e["HERE"], "packages": e["PACKAGES"], "directory": e["WWW"],
    "recorder": recorder, "recordedSeconds": int(e["RECORDED"]),
    "packager": command, "packagerLog": f"{e['DIR']}/logs/packager.log", "packagerPart": f"{e['DIR']}/parts/packager",
}, __import__("sys").stdout, indent=1)
END
}

start() {
  local program package=(ffmpeg:ffmpeg nginx:nginx openssl:openssl curl:curl prosody:prosody \
    nodejs:node npm:npm python3:python3) missing=()
  for program in "${package[@]}"; do
    command -v "${program#*:}" >/dev/null || missing+=("${program%%:*}")
  done
  [[ -e $module ]] || missing+=(libnginx-mod-rtmp)
  [[ ${#missing[@]} -eq 0 ]] || { echo "please install: ${missing[*]}" >&2; exit 1; }

  mkdir -p "$dir"/{conf,logs,parts,tls,tmp,prosody,www}
  [[ -z $objects ]] || build_versitygw || exit 1
  packages=$("$here/packages.sh") || exit 1
  client
  certificate
  fill nginx.conf.in nginx.conf
  fill prosody.cfg.lua.in prosody.cfg.lua
  here=$live_stand fill rtmp.conf.in rtmp.conf
  write_config

  pid_of nginx >/dev/null || rm -f "$dir"/logs/{access,combined-access,upgrades}.log
  part nginx nginx -p "$dir" -c "$dir/conf/nginx.conf" -e "$dir/logs/nginx.log"
  wait_for nginx "answer on port $http" url "http://127.0.0.1:$http/ready"
  wait_for nginx "answer on port $https" url "https://127.0.0.1:$https/ready"
  encode
  wait_for encoder "stream at the relay" shows '<publishing/>' "http://127.0.0.1:$http/rtmp"
  part prosody prosody --config "$dir/conf/prosody.cfg.lua" -F
  wait_for prosody "answer on port $prosody" curl --silent --max-time 3 "http://127.0.0.1:$prosody/"
  if [[ -n $objects ]]; then
    mkdir -p "$dir/s3"
    pid_of s3 >/dev/null || rm -f "$dir/logs/s3-access.log"
    part s3 env ROOT_ACCESS_KEY=stand ROOT_SECRET_KEY=stand-secret \
      "$kept/bin/versitygw" \
      --port "127.0.0.1:$s3" --health /ready --keep-alive --quiet \
      --access-log "$dir/logs/s3-access.log" posix "$dir/s3"
    wait_for s3 "answer on port $s3" url "http://127.0.0.1:$s3/ready"
  fi
  part peertube node "$here/peertube.mjs" "$dir/conf/peertube.json"
  wait_for peertube "answer on port $node" url "$control/counters"
  case $state in
    live) wait_for peertube "live" shows '"state":"live"' "$control/counters" ;;
    recorded) change_state recorded >/dev/null ;;
  esac
  urls
}

change_state() { url --max-time 300 --json "{\"state\":\"$1\"}" "$control/state"; }

# Where players find the live.
playlist() {
  local below=static/streaming-playlists at=$http
  ! pid_of s3 >/dev/null || below=live at=$s3
  echo "http://127.0.0.1:$at/$below/hls/$uuid/master.m3u8"
}

# The object storage's log by operation, kind of object and asker, in all and a minute since the
# first.
operations() {
  local log=$dir/logs/s3-access.log
  [[ -s $log ]] || return 0
  echo
  python3 "$here/operations.py" "$log"
}

urls() {
  printf '%-14s %s\n' \
    "page" "http://127.0.0.1:$http/w/$(url "$control/counters" | sed 's/.*"shortUUID":"\([^"]*\)".*/\1/')" \
    "video" "http://127.0.0.1:$http/api/v1/videos/$uuid" \
    "HLS" "$(playlist)" \
    "HTTPS, HTTP/2" "the same on https://localhost:$https" \
    "chat" "room $uuid@room.$domain, ws://127.0.0.1:$http/plugins/livechat/ws/xmpp-websocket" \
    "tracker" "ws://127.0.0.1:$http/tracker/socket" \
    "control" "$control/counters" \
    "certificate" "$dir/tls/cert.pem" \
    "requests" "$dir/logs/access.log"
}

stop() {
  end_all
  rm -rf "$dir/prosody" "$dir/client"
}

# All processes of a part.
signal() { # PART SIGNAL
  local pid; pid=$(pid_of "$1") || { echo "$1 does not run; parts: ${parts[*]}" >&2; exit 1; }
  kill "-$2" -- "-$pid"
}

case $asked in
  start) start ;;
  stop) stop ;;
  status) ended=0; status || ended=$?; operations; exit $ended ;;
  freeze) signal "$to" STOP ;;
  thaw) signal "$to" CONT ;;
  counters) url "$control/counters"; echo ;;
  take) "$here/compare.py" --take "$control" "$dir/logs/access.log" ;;
  state) change_state "$to"; echo ;;
  *) explain ;;
esac
