#!/usr/bin/env bash
# cargo-nextest runs each test through this (scripts/test.sh). Adds a line to the file
# THRONG_TEST_CPU: CPU-seconds, binary and name of the test. A control group counts what the test
# started as well, such as servers and the processes of a browser that was killed. Without the right
# to make one, or where it would also share CPU time (which lets a generator wait for its turn, see
# scripts/test.sh), only what was waited for is counted.
[[ -n ${THRONG_TEST_CPU:-} && -n ${NEXTEST_TEST_NAME:-} ]] || exec "$@"

group=
for root in /sys/fs/cgroup/cpuacct /sys/fs/cgroup/unified /sys/fs/cgroup; do
  [[ -e $root/cpuacct.usage || -e $root/cgroup.procs ]] || continue
  [[ ! -e $root/cpu.shares ]] && ! grep -qsw cpu "$root/cgroup.subtree_control" || continue
  group=$root/throng-test-$$
  mkdir "$group" 2>/dev/null && echo $$ >"$group/cgroup.procs" 2>/dev/null && break
  rmdir "$group" 2>/dev/null
  group=
done

"$@"
status=$?

microseconds=0
if [[ -e $group/cpuacct.usage ]]; then
  read -r nanoseconds <"$group/cpuacct.usage"
  microseconds=$((nanoseconds / 1000))
elif [[ -n $group ]]; then
  read -r _ microseconds <"$group/cpu.stat"
else
  # The second line is that of the children, such as "0m1.234s 0m0.567s".
  times >"$THRONG_TEST_CPU.$$"
  microseconds=$(awk -F'[ms ]+' 'NR == 2 { printf "%d", 1e6 * (60 * ($1 + $3) + $2 + $4) }' \
    "$THRONG_TEST_CPU.$$")
  rm -f "$THRONG_TEST_CPU.$$"
fi
printf '%d.%06d\t%s\t%s\n' $((microseconds / 1000000)) $((microseconds % 1000000)) \
  "$NEXTEST_BINARY_ID" "$NEXTEST_TEST_NAME" >>"$THRONG_TEST_CPU"
if [[ -n $group ]]; then
  echo $$ >"$root/cgroup.procs"
  # Fails while something that the test left is still running.
  rmdir "$group" 2>/dev/null
fi
exit $status
