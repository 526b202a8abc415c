#!/usr/bin/env python3
"""The laws of scripts/test-report.py: what is flaky, failed, not tested and skipped, and when the
suite fails."""

import subprocess
import sys
import tempfile
from pathlib import Path

REPORT = Path(__file__).with_name("test-report.py")
PASSED, FAILED = "", '<failure type="test failure">left == right</failure>'
SPOILED = "<failure>panicked</failure><system-err>NOT TESTED: stolen CPU</system-err>"
SKIPPED = "<system-err>SKIPPED: no root</system-err>"


def junit(folder, name, cases, suite="throng-cli::e2e"):
    tests = "".join(
        f'<testcase name="{case}" time="1.5">{body}</testcase>' for case, body in cases.items()
    )
    path = Path(folder) / name
    path.write_text(f'<testsuites><testsuite name="{suite}">{tests}</testsuite></testsuites>')
    return str(path)


def report(first, again=None, *more):
    with tempfile.TemporaryDirectory() as folder:
        arguments = [junit(folder, "first", first)]
        arguments += ["--again", junit(folder, "again", again)] if again else []
        ran = subprocess.run(
            [sys.executable, REPORT, *arguments, *more], capture_output=True, text=True
        )
    assert not ran.stderr, ran.stderr
    return ran.returncode, ran.stdout


def check(name, said, code, *words):
    assert said[0] == code, (name, said)
    for word in words:
        assert word in said[1], (name, word, said[1])


many = {f"find::t{n}": PASSED for n in range(40)}
check(
    "all passed",
    report(many),
    0,
    "60.0     0.0     40  throng-cli/e2e/find",
    "40 passed, 0 failed, 0 skipped",
)
check(
    "a failure",
    report(many | {"a::b": FAILED}),
    1,
    "Failed:\n  throng-cli::e2e a::b",
    "40 passed, 1 failed",
)
check("flaky", report(many | {"a::b": FAILED}, {"a::b": PASSED}), 0, "FLAKY", "41 passed, 0 failed")
check("failed twice", report(many | {"a::b": FAILED}, {"a::b": FAILED}), 1, "Failed:")
check("failed, then spoiled", report(many | {"a::b": FAILED}, {"a::b": SPOILED}), 1, "Failed:")
check(
    "spoiled",
    report(many | {"a::b": SPOILED}),
    0,
    "Not tested:\n  throng-cli::e2e a::b: stolen CPU",
    "0 failed, 1 skip",
)
check(
    "spoiled, then passed",
    report(many | {"a::b": SPOILED}, {"a::b": PASSED}),
    0,
    "Repeated",
    "a::b: stolen CPU",
    "41 passed, 0 failed, 0 skipped",
)
check(
    "spoiled, then failed",
    report(many | {"a::b": SPOILED}, {"a::b": FAILED}),
    1,
    "Failed:\n  throng-cli::e2e a::b",
    "1 failed",
)
check(
    "spoiled twice",
    report(many | {"a::b": SPOILED}, {"a::b": SPOILED}),
    0,
    "Not tested:",
    "0 failed, 1 skip",
)
check(
    "too many",
    report(many | {f"a::{n}": SPOILED for n in range(3)}),
    1,
    "e2e: 3 of 43 tests were not tested",
)
check(
    "skipped",
    report(many | {"a::b": SKIPPED}),
    0,
    "Skipped:\n  throng-cli::e2e a::b: no root",
    "40 passed, 0 failed, 1 skipped",
)
check("no test", report({}), 1, "0 passed")
with tempfile.NamedTemporaryFile("w") as cpu:
    cpu.write("1.5\tthrong-cli::e2e\tfind::t1\n0.5\tthrong-cli::e2e\tfind::t2\n")
    cpu.flush()
    check(
        "CPU", report(many, None, "--cpu", cpu.name), 0, "60.0     2.0     40  throng-cli/e2e/find"
    )
check("busy", report(many, None, "--wall", "10", "--busy", "0.81"), 0, "busy for 81% of it")
check(
    "over budget", report(many, None, "--wall", "901"), 0, "901 s of a budget of 900 s, OVER BUDGET"
)
