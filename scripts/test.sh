#!/usr/bin/env bash
# The checks of every landing: laws, hostile input, the end-to-end tests against real servers, planted limits that
# throng must find (lab/), the ring (ring/test.sh). 15 minutes on 2 cores; longer checks are in `make proof`.
# .config/nextest.toml sets which tests run in parallel; scripts/test-report.py explains what tests print.
# What is measured stays in target/test-times, for scripts/test-permits.py.
# cargo-nextest writes its reports below the root of each workspace, whatever CARGO_TARGET_DIR is.
set -uo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh
target=${CARGO_TARGET_DIR:-target}
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
pool() { cargo nextest run --workspace --locked "$@"; }
ring() { CARGO_TARGET_DIR=$target ring/test.sh "$@"; }

times=$(realpath -m "$target/test-times")
mkdir -p "$times" && rm -f "$times"/*
# Built before the clock of the budget starts.
build() {
  # cargo-nextest builds the same, without a table.
  cargo test --workspace --locked --no-run --timings && scripts/build-times.py "$target/cargo-timings/cargo-timing.html"
}
step "build of tests" build || exit 1
step "build of the ring's tests" ring build || exit 1

status=0
began=$(machine_time)
test_ring() {
  rm -f ring/target/nextest/default/ring.xml
  ring 2>&1 | tee "$times/said"
}
step "tests of the ring" test_ring || status=1
awk 'END { print $1, "ring/test.sh" }' "$THRONG_STEPS" >"$times/more"

export THRONG_TEST_CPU=$times/cpu
export "CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)_RUNNER=$PWD/scripts/measured.sh"
rm -f target/nextest/{default,again}/junit.xml
step "tests" pool
case $? in 0 | 100) ;; *) exit 1 ;; esac
cp target/nextest/default/junit.xml "$times/junit.xml"
report=(scripts/test-report.py "$times/junit.xml")
# Failed tests of the ring are not repeated: nothing ran in parallel with them.
"${report[@]}" --again-to "$times/again"
report+=(ring/target/nextest/default/ring.xml)
if [[ -s $times/again ]]; then
  step "AGAIN, what failed or was not tested, one by one" pool --profile again -E "$(cat "$times/again")"
  report+=(--again target/nextest/again/junit.xml)
fi
read -r wall busy stolen < <(machine_use "$began" "$(machine_time)")
"${report[@]}" --cpu "$times/cpu" --more "$times/more" --said "$times/said" \
  --wall "$wall" --busy "$busy" --stolen "$stolen" || status=1
exit $status
