#!/usr/bin/env python3
"""The last lines of `make test`: seconds by test file, the budget, and all tests that did not
simply pass.

    scripts/test-report.py JUNIT... [--again JUNIT] [--again-to FILE] [--cpu FILE] [--more FILE]
                           [--said FILE] [--wall SECONDS] [--busy RATIO] [--stolen RATIO]

Reads the JUnit XML of cargo-nextest. Tests print these words (crates/sim/src/outcome.rs):
  NOT TESTED: reason   the machine spoiled the measurement: the test ends, neither passed nor failed
  SKIPPED: reason      this machine lacks something that the test, or a part of it, needs
  REPEATED: reason     the machine spoiled a measurement, which was repeated
--again is the second run, of the tests that did not pass in the first: one that failed first and
passes there is FLAKY, a defect to fix; one that the machine spoiled counts as what it is there,
where no other test runs in parallel. --cpu is what scripts/measured.sh wrote: CPU-seconds of each
test; --busy the share of all cores that was in use. --more has a line `SECONDS NAME` for each
script that is not a cargo test, --said their output. With --again-to, it only writes the names of
the tests to repeat, as cargo-nextest filters, and prints nothing. The exit code is 1 if a test
failed or too little was tested.
"""

import argparse
import collections
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from test_times import cpu_of, file_of, tests_of  # noqa: E402

BUDGET_S = 900
# Share of the tests of one binary. One test is always allowed: one is a quarter of a suite of four.
NOT_TESTED_RATIO_MAX = 0.05

def reasons(test, word):
    return sorted({line.strip() for line in re.findall(rf"{word}: (.*)", test.said)})


def is_spoiled(test):
    return test.failure and bool(reasons(test, "NOT TESTED"))


def listed(title, rows):
    if rows:
        print(f"\n{title}")
        for row in rows:
            print(f"  {row}")


def named(test):
    return f"{test.binary} {test.name}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("junit", nargs="+")
    parser.add_argument("--again")
    parser.add_argument("--again-to")
    parser.add_argument("--cpu")
    parser.add_argument("--more")
    parser.add_argument("--said")
    parser.add_argument("--wall", type=float)
    parser.add_argument("--busy", type=float)
    parser.add_argument("--stolen", type=float)
    options = parser.parse_args()

    first = [test for path in options.junit for test in tests_of(path)]
    if options.again_to:
        with open(options.again_to, "w") as file:
            file.write(
                " + ".join(
                    f"(binary_id(={t.binary}) & test(={t.name}))" for t in first if t.failure
                )
            )
        return 0

    again = {named(test): test for test in tests_of(options.again)} if options.again else {}
    # A spoiled test showed nothing: its repetition is the result. A failed one did: nothing but a
    # pass changes that.
    tests = [again.get(named(test), test) if is_spoiled(test) else test for test in first]
    not_tested = [test for test in tests if is_spoiled(test)]
    failed = [test for test in tests if test.failure and not is_spoiled(test)]
    flaky = [test for test in failed if named(test) in again and not again[named(test)].failure]
    failed = [test for test in failed if test not in flaky]
    repeated = [
        f"{named(test)}: {why}"
        for test in tests
        if test not in not_tested
        for why in reasons(test, "REPEATED")
    ]
    repeated += [
        f"{named(was)}: {why}"
        for was, test in zip(first, tests)
        if is_spoiled(was) and not is_spoiled(test)
        for why in reasons(was, "NOT TESTED")
    ]

    cpu = cpu_of(options.cpu) if options.cpu else {}
    seconds, used, counts = collections.Counter(), collections.Counter(), collections.Counter()
    for test in tests:
        seconds[file_of(test)] += test.seconds
        used[file_of(test)] += cpu.get((test.binary, test.name), 0)
        counts[file_of(test)] += 1
    if options.more:
        for line in open(options.more):
            took, name = line.split(maxsplit=1)
            seconds[name.strip()], counts[name.strip()] = float(took), 1
    print(f"\n{'seconds':>8} {'CPU s':>7} {'tests':>6}  file (several run at a time)")
    for file, took in seconds.most_common():
        print(f"{took:8.1f} {used[file]:7.1f} {counts[file]:6}  {file}")

    by_scripts = open(options.said).read() if options.said else ""
    listed(
        "Skipped:",
        re.findall("SKIPPED: (.*)", by_scripts)
        + sorted({f"{named(t)}: {why}" for t in tests for why in reasons(t, "SKIPPED")}),
    )
    listed("Repeated, because the machine spoiled a measurement:", repeated)
    listed(
        "Not tested:",
        [f"{named(t)}: {why}" for t in not_tested for why in reasons(t, "NOT TESTED")],
    )
    listed("FLAKY (failed, and passed when repeated):", [named(test) for test in flaky])
    listed(
        "Failed:", re.findall("FAILED: (ring/.*)", by_scripts) + [named(test) for test in failed]
    )

    in_binary = collections.Counter(test.binary for test in tests)
    missing = collections.Counter(test.binary for test in not_tested)
    too_few = [
        f"{binary}: {count} of {in_binary[binary]} tests were not tested"
        for binary, count in missing.items()
        if count > max(1, NOT_TESTED_RATIO_MAX * in_binary[binary])
    ]
    listed("Too much was not tested:", too_few)
    if options.wall is not None:
        over = "" if options.wall <= BUDGET_S else ", OVER BUDGET"
        stolen = (
            f"; the hypervisor took {options.stolen:.1%} of the CPU"
            if options.stolen is not None
            else ""
        )
        busy = (
            f"; the cores were busy for {options.busy:.0%} of it"
            if options.busy is not None
            else ""
        )
        print(f"\ntook {options.wall:.0f} s of a budget of {BUDGET_S} s{over}{busy}{stolen}")
    # CI systems know no fourth state in this line: tests that were not tested, or a part of which
    # was skipped, count as skipped in it.
    skipped = not_tested + [
        test for test in tests if test not in failed + not_tested and reasons(test, "SKIPPED")
    ]
    passed = len(tests) - len(failed) - len(skipped)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or too_few or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
