#!/usr/bin/env bash
# The campus study in a short form (examples/campus-study): makes its films once, then runs each of
# its matrices. 15 minutes on two cores. Needs root for mounts and control groups; cells that need
# more than there is are skipped.
#   scripts/study.sh PATH-OF-THRONG [STUDY…]
set -euo pipefail
throng=${1:?usage: scripts/study.sh PATH-OF-THRONG [STUDY…]}
shift
cd "$(dirname "$0")/.."
studies=("$@")
[[ ${#studies[@]} -gt 0 ]] || studies=(storage viewers codec cpus protocol)

films=runs/study-films
make_films() { # NAME COUNT CODEC BITRATE
  [[ -e $films/$1/catalogue.json ]] && return
  rm -rf "${films:?}/$1"
  echo "Making $2 films of $4 in $films/$1"
  "$throng" media make --codec "$3" --bitrate "$4" --count "$2" --seconds 40 --size 640x360 \
    --output "$films/$1"
}
for codec in mpeg2 h264; do
  for rate in 2M 5M 10M; do
    make_films "one-$codec-$rate" 1 $codec $rate
    folder=$films/one-$codec-$rate
    for file in "$folder"/file-*; do
      ln -sf "$(basename "$file")" "$folder/movie-0.${file##*.}"
    done
  done
done
make_films mpeg2-2M 30 mpeg2 2M

output=runs/study-$(date +%Y%m%d-%H%M%S)
status=0
for study in "${studies[@]}"; do
  echo
  "$throng" matrix "examples/campus-study/$study.toml" --output "$output/$study" || status=$?
  [[ $status -ne 130 ]] || exit 130
done
echo
echo "The reports: $output/*/report.html"
exit $status
