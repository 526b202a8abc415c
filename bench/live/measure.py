#!/usr/bin/python3
"""Measures what it costs to look at runs, for bench/live.sh, which says what it needs; prints
Markdown, and puts it into a page of docs/measurements."""

import argparse
import asyncio
import pathlib
import signal
import sys
import tempfile
import textwrap

import day
import folders
import machine
import run
from tables import Goals

PARTS = ("run", "list", "day")


class Size:
    """How large what is measured is."""

    def __init__(self, is_quick, rounds):
        self.viewers, self.threads, self.window_s = (100, 200, 5) if is_quick else (1000, 2000, 30)
        self.rounds = rounds or (1 if is_quick else 3)
        self.folders = 100 if is_quick else 1000
        self.rows_s = 1800 if is_quick else 8 * 3600
        self.times = 3 if is_quick else 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    for program in ("throng", "watch", "watched-run"):
        parser.add_argument(f"--{program}", type=pathlib.Path, required=True)
    parser.add_argument("--before", type=pathlib.Path, help="a throng of an earlier version")
    parser.add_argument("--named", default="bench/live.sh", help="the command, as the page has it")
    parser.add_argument("--page", type=pathlib.Path, help="where the result is put")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", default=",".join(PARTS), help="some of " + ", ".join(PARTS))
    given = parser.parse_args()
    given.only = given.only.split(",")
    if unknown := set(given.only) - set(PARTS):
        parser.error(f"no such part: {', '.join(unknown)}")
    for program in filter(None, (given.throng, given.watch, given.watched_run, given.before)):
        if not program.is_file():
            parser.error(f"{program}: there is no such program")
    return given


async def measured(given, size, work):
    goals, sections = Goals(), []
    if "run" in given.only:
        sections.append(await run.measure(given, size, work, goals))
    if "list" in given.only:
        folders.measure(given, size, work, goals)
    if "day" in given.only:
        await day.measure(given, size, work, goals)
    return [goals.table(), *sections]


def put(page, text):
    """Replaces what is between the markers of the page."""
    begin, end = "<!-- live:begin -->", "<!-- live:end -->"
    before, rest = page.read_text().split(begin)
    _, after = rest.split(end)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def main():
    given = arguments()
    size = Size(given.quick, given.rounds)
    load = machine.load()
    with tempfile.TemporaryDirectory(prefix="throng-live-") as work:
        sections = asyncio.run(measured(given, size, pathlib.Path(work)))
    head = f"{machine.date()}, by `{given.named}`. {machine.told(given.throng)} Load average "
    head += f"{load:.1f} before it. CPU is in percent of one core."
    if given.quick:
        head += " A quick run, of a tenth of the size: its figures are none."
    text = "\n\n".join([textwrap.fill(head, 100), *sections])
    print(text)
    if given.page:
        put(given.page, text)


if __name__ == "__main__":
    # A stop by a signal ends what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
