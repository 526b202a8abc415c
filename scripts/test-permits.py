#!/usr/bin/env python3
"""Writes the measured part of .config/nextest.toml: how many permits a test takes while it runs,
and which begin first.

    scripts/test-permits.py [JUNIT CPU]     by default those that the last `make test` left in
                                            target/test-times

A permit is a sixteenth of a core. A test takes as many as the share of a core that it was measured
to use, and at least two, since CPU time is needed in bursts. The longest begin first, so that they
do not end last.
Tests of a module share their figures; a test of some seconds whose use differs from its module's by
half has its own. Those that the file names above its measured part are left to it.
"""

import collections
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from test_times import cpu_of, file_key, tests_of  # noqa: E402

PERMITS_PER_CORE = 16
# Shorter ones are about as expensive to start as to run: they have the figure of the default.
OWN_FIGURE_FROM_S = 4
# Priorities by the seconds of a test.
BEGINS_BEFORE = ((60, 90), (30, 80), (20, 70), (10, 60), (5, 50), (0, 40))
BEGIN, END = "# BEGIN measured by scripts/test-permits.py\n", "# END measured\n"


def permits(cpu_s, seconds):
    return max(2, round(PERMITS_PER_CORE * cpu_s / max(seconds, 1e-3)))


def priority(seconds):
    return next(priority for least, priority in BEGINS_BEFORE if seconds >= least)


def differ(a, b):
    return abs(a - b) > max(1, 0.5 * min(a, b))


def overrides(tests, cpu):
    """Filters of single tests and of modules, by priority and permits."""
    modules = collections.defaultdict(list)
    for test in tests:
        if (test.binary, test.name) in cpu:
            modules[file_key(test)].append(test)
    singles, wholes = collections.defaultdict(list), collections.defaultdict(list)
    for (binary, module), members in sorted(modules.items()):
        seconds = sum(test.seconds for test in members)
        if seconds < OWN_FIGURE_FROM_S:
            continue
        used = permits(sum(cpu[test.binary, test.name] for test in members), seconds)
        first = priority(max(test.seconds for test in members))
        for test in members:
            own = permits(cpu[test.binary, test.name], test.seconds), priority(test.seconds)
            if test.seconds >= OWN_FIGURE_FROM_S and differ(own[0], used):
                singles[own].append(f"binary_id(={binary}) & test(={test.name})")
        in_module = f" & test(/^{re.escape(module)}::/)" if module else ""
        wholes[used, first].append(f"binary_id(={binary}){in_module}")
    return singles, wholes


def blocks(groups):
    for (permits, priority), filters in sorted(
        groups.items(), key=lambda row: (-row[0][1], row[0][0])
    ):
        lines = "\n+ ".join(f"({one})" for one in filters)
        yield (f"[[profile.default.overrides]]\nfilter = '''\n{lines}\n'''\n"
               f"threads-required = {permits}\npriority = {priority}\n")


def main():
    root = Path(__file__).parent.parent
    junit, cpu = sys.argv[1:] or (
        root / "target/test-times/default.xml",
        root / "target/test-times/cpu",
    )
    config = root / ".config/nextest.toml"
    before, rest = config.read_text().split(BEGIN)
    singles, wholes = overrides(list(tests_of(junit)), cpu_of(cpu))
    # Single tests first: the first override that sets a key wins.
    config.write_text(
        before + BEGIN + "\n".join([*blocks(singles), *blocks(wholes)]) + END + rest.split(END)[1]
    )


if __name__ == "__main__":
    main()
