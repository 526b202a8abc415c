#!/usr/bin/env python3
"""Where the time of a build went: seconds by crate of this workspace, and of all dependencies
together.

    scripts/build-times.py [HTML]      the page of `cargo build --timings`, of which it reads the
                                       data in UNIT_DATA; target/cargo-timings/cargo-timing.html
                                       unless named

Seconds are those of a compilation, several of which run at a time. A crate's code is compiled as a
library, once more with its unit tests, and its other targets are the binaries and integration
tests.
"""

import collections
import json
import re
import sys

with open((sys.argv[1:] or ["target/cargo-timings/cargo-timing.html"])[0]) as page:
    units = json.loads(re.search(r"const UNIT_DATA = (\[.*?\]);\n", page.read(), re.S)[1])

SHAPES = ("library", "unit tests", "others", "all")


def shape(target):
    """Targets are written as `name "kind" (mode)`; a library that is no test has none."""
    if not target.strip():
        return "library"
    return "unit tests" if target.endswith(('"lib" (test)', '"bin" (test)')) else "others"


seconds = collections.defaultdict(collections.Counter)
for unit in units:
    crate = unit["name"] if unit["name"].startswith("throng") else "dependencies"
    for column in (shape(unit["target"]), "all"):
        seconds[crate][column] += unit["duration"]

if not units:
    print("nothing had to be compiled")
    sys.exit()
print(
    "".join(f"{name:>11}" for name in SHAPES)
    + "  crate (seconds, several compilations run at a time)"
)
for crate, of in sorted(seconds.items(), key=lambda row: -row[1]["all"]):
    print("".join(f"{of[shape]:11.1f}" for shape in SHAPES) + f"  {crate}")
