#!/usr/bin/env bash
# The checks of every landing: laws, hostile input, the end-to-end tests against real servers,
# planted limits that throng must find (lab/), the ring (ring/test.sh). 15 minutes on 2 cores;
# longer checks are in `make proof`. .config/nextest.toml sets which tests run in parallel;
# scripts/test-report.py explains what tests print. What is measured stays in target/test-times, for
# scripts/test-permits.py.
# cargo-nextest writes its reports below the root of each workspace, whatever CARGO_TARGET_DIR is.
set -uo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh
target=${CARGO_TARGET_DIR:-target}
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/throng/bin
ring() { CARGO_TARGET_DIR=$target ring/test.sh "$@"; }

times=$(realpath -m "$target/test-times")
mkdir -p "$times" && rm -f "$times"/*
# Built before the clock of the budget starts.
build() {
  # cargo-nextest builds the same, without a table.
  cargo test --workspace --locked --no-run --timings &&
    scripts/build-times.py "$target/cargo-timings/cargo-timing.html"
}
step "build of tests" build || exit 1
step "build of the ring's tests" ring build || exit 1

status=0
began=$(machine_time)
export THRONG_TEST_CPU=$times/cpu
export "CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)_RUNNER=$PWD/scripts/measured.sh"
# Those of the sans-IO crates: no clock decides their result, so they may fill the machine. The
# others may not.
computations='package(/^throng-(analysis|media|observation|protocol|report|scenario|store)$/)'
rm -f target/nextest/{computations,default,again}/junit.xml
# In one group for CPU time. The kernel shares it between groups first, and makes one of each
# session (CONFIG_SCHED_AUTOGROUP, sched(7)): servers and browsers in sessions of their own would
# get turns of some milliseconds, whatever the priorities of processes, and generators would be
# late.
pool() (
  group=/sys/fs/cgroup/cpu/throng-tests
  { mkdir -p $group && echo "$BASHPID" >$group/cgroup.procs; } 2>/dev/null
  cargo nextest run --workspace --locked "$@"
  # 100: some failed.
  [[ $? =~ ^(0|100)$ ]]
)
step "computations" pool --profile computations -E "$computations" || exit 1
step "tests" pool -E "not $computations" || exit 1
report=(scripts/test-report.py)
for profile in computations default; do
  cp target/nextest/$profile/junit.xml "$times/$profile.xml"
  report+=("$times/$profile.xml")
done
test_ring() {
  rm -f ring/target/nextest/default/ring.xml
  ring 2>&1 | tee "$times/said"
}
step "tests of the ring" test_ring || status=1
awk 'END { print $1, "ring/test.sh" }' "$THRONG_STEPS" >"$times/more"

# Failed tests of the ring are not repeated: nothing ran in parallel with them.
"${report[@]}" --again-to "$times/again"
report+=(ring/target/nextest/default/ring.xml)
if [[ -s $times/again ]]; then
  step "AGAIN, what failed or was not tested, one by one" pool --profile again \
    -E "$(cat "$times/again")"
  report+=(--again target/nextest/again/junit.xml)
fi
read -r wall busy stolen < <(machine_use "$began" "$(machine_time)")
"${report[@]}" --cpu "$times/cpu" --more "$times/more" --said "$times/said" \
  --wall "$wall" --busy "$busy" --stolen "$stolen" || status=1
exit $status
