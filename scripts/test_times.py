"""Reads what cargo-nextest and scripts/measured.sh write of each test."""

import collections
import xml.etree.ElementTree as xml

Test = collections.namedtuple("Test", "binary name seconds said failure")


def tests_of(path):
    """The tests of a JUnit report of cargo-nextest."""
    for suite in xml.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            failed = [e for kind in ("failure", "error") for e in case.iter(kind)]
            outputs = [e.text for kind in ("system-out", "system-err") for e in case.iter(kind)]
            said = "\n".join(text for text in outputs + [e.text for e in failed] if text)
            yield Test(
                suite.get("name"),
                case.get("name"),
                float(case.get("time") or 0),
                said,
                bool(failed),
            )


def cpu_of(path):
    """CPU-seconds by (binary, test). The last line of a test counts: it may have run twice."""
    with open(path) as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return {(binary, name): float(seconds) for seconds, binary, name in rows}


def file_key(test):
    """Binary and module of an integration test; unit tests are told apart by crate only."""
    is_unit = "::" not in test.binary or "::bin/" in test.binary
    return test.binary, test.name.split("::")[0] if "::" in test.name and not is_unit else ""


def file_of(test):
    """The file of an integration test, as far as its name shows it; for unit tests their crate."""
    binary, module = file_key(test)
    package, _, target = binary.partition("::")
    if not target or target.startswith("bin/"):
        return f"{package} (unit)"
    return "/".join(filter(None, (package, target, module)))
