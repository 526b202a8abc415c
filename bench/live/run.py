"""A run that is looked at while it happens: the same viewers without the flags and with them, in
turn, so that only the flags differ."""

import asyncio
import contextlib
import json
import re
import sqlite3
import statistics
import subprocess
import sys

import machine
from chromium import tab
from tables import spread

EVERY_MS = 10
# A generator that is late, and the watching of the idle server, may put the joins off.
PLAY_WITHIN_S = 60
PLAYING_RATIO = 0.99
# After all play, and the page was loaded.
SETTLE_S = 10
# For the end of the window, on a busy machine.
SPARE_S = 20
ENDED_WITHIN_S = 120

SCRAPED, LOOKED_AT, UNASKED = "scraped each second", "a page looked at", "with flags, unasked"
OFF, BEFORE = "without the flags", "an earlier version"
STRIP = "document.getElementById('part-strip').textContent"


def playing(folder):
    """How many play, by the last second that is stored."""
    query = "SELECT sum(playing) FROM crowd WHERE second = (SELECT max(second) FROM crowd)"
    try:
        with contextlib.closing(sqlite3.connect(f"file:{folder}/run.db?mode=ro", uri=True)) as run:
            return run.execute(query).fetchone()[0] or 0
    except sqlite3.OperationalError:
        return 0  # It is not there yet.


class Round:
    """One run, and what was measured in its window."""

    def __init__(self, variant, throng):
        self.variant, self.throng, self.ports = variant, throng, {}
        wanted = {SCRAPED: ["--prometheus"], LOOKED_AT: ["--serve"],
                  UNASKED: ["--serve", "--prometheus"]}
        for flag in wanted.get(variant, []):
            self.ports[flag] = machine.free_port()
        self.browser, self.scrapes_s, self.series, self.left_out = None, [], 0, 0

    def flags(self):
        return [word for flag, port in self.ports.items() for word in (flag, f"127.0.0.1:{port}")]

    def scrape(self):
        """By a client of its own, as a scraper is one."""
        url = f"http://127.0.0.1:{self.ports['--prometheus']}/metrics"
        command = ["curl", "--silent", "--fail", "--write-out", "\n%{time_total}", url]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        *lines, seconds = said.splitlines()
        self.scrapes_s.append(float(seconds))
        self.series = max(self.series, sum(bool(line) and line[0] != "#" for line in lines))
        left_out = re.search(r"^throng_exporter_left_out_series ([\d.]+)", said, re.MULTILINE)
        self.left_out = max(self.left_out, float(left_out[1]))

    async def window(self, pid, seconds, page):
        """Measures this time of the run."""
        began, browser = machine.cpu_s(pid), page.cpu_s() if page else 0
        stolen, ticks = machine.machine_ticks()
        at = asyncio.get_running_loop().time()
        until = at + seconds
        while (now := asyncio.get_running_loop().time()) < until:
            if self.variant == SCRAPED:
                await asyncio.to_thread(self.scrape)
            await asyncio.sleep(min(1, max(0, until - now)))
        seconds = asyncio.get_running_loop().time() - at
        self.throng_percent = 100 * (machine.cpu_s(pid) - began) / seconds
        if page:
            self.browser = 100 * (page.cpu_s() - browser) / seconds
        stolen_then, ticks_then = machine.machine_ticks()
        self.stolen_percent = 100 * (stolen_then - stolen) / (ticks_then - ticks)
        self.threads = machine.threads(pid)

    async def all_play(self, process, log, folder, size, within_s):
        for _ in range(round(within_s)):
            machine.still_runs(process, log)
            if playing(folder) >= PLAYING_RATIO * size.viewers:
                return
            await asyncio.sleep(1)
        sys.exit(f"{playing(folder)} of {size.viewers} viewers play after {within_s:.0f} s")

    async def play(self, target, watched, size, folder):
        log = folder.with_suffix(".log")
        joins_s = size.viewers * EVERY_MS / 1000
        lasts_s = joins_s + SETTLE_S + size.window_s + SPARE_S
        command = [
            self.throng, "view", target, "-n", str(size.viewers), "--every", f"{EVERY_MS}ms",
            "--for", f"{lasts_s:.0f}s", "--quiet", "--watch", f"pid={watched}",
            "--output", folder, *self.flags(),
        ]  # fmt: skip
        async with contextlib.AsyncExitStack() as stack:
            page = await stack.enter_async_context(tab()) if self.variant == LOOKED_AT else None
            process = stack.enter_context(machine.started(command, log))
            await self.all_play(process, log, folder, size, joins_s + PLAY_WITHIN_S)
            if page:
                await page.load(f"http://127.0.0.1:{self.ports['--serve']}/")
                before = await page.evaluate(STRIP)
            await asyncio.sleep(SETTLE_S)
            await self.window(process.pid, size.window_s, page)
            # They still do.
            await self.all_play(process, log, folder, size, 3)
            if page and await page.evaluate(STRIP) == before:
                sys.exit("the page stood still: what it cost is of no page that is looked at")
            await asyncio.to_thread(process.wait, ENDED_WITHIN_S)
        summary = json.loads((folder / "summary.json").read_text())
        self.is_limited = summary["generator"]["limited"]
        return self


@contextlib.contextmanager
def stage_and_watched(given, size, work):
    """The address of a stage, and the PID of a program with threads that sleep but for a few."""
    stage = f"127.0.0.1:{machine.free_port()}"
    serves = [given.throng, "stage", "--listen", stage, "--card", "low"]
    crowd = [given.watch, "--crowd", "--threads", str(size.threads)]
    with machine.started(serves, work / "stage.log"), \
            machine.started(crowd, work / "watched.log") as watched:
        yield f"whep+http://{stage}/whep", watched.pid


async def measure(given, size, work, goals):
    """All rounds; a table of the variants."""
    programs = {variant: given.throng for variant in (OFF, UNASKED, SCRAPED, LOOKED_AT)}
    if given.before:
        programs = {BEFORE: given.before} | programs
    rounds = []
    with stage_and_watched(given, size, work) as (target, watched):
        await asyncio.sleep(2)
        for number in range(size.rounds):
            # Every other round in the opposite order.
            order = list(programs) if number % 2 == 0 else list(programs)[::-1]
            of_round = {}
            for variant in order:
                folder = work / f"run-{number}-{order.index(variant)}"
                one = Round(variant, programs[variant])
                of_round[variant] = await one.play(target, watched, size, folder)
            rounds.append(of_round)
    judge(rounds, goals)
    return table(rounds, size)


def more(rounds, variant, than):
    """What a variant takes more than another one of the same round, percent of a core."""
    return [one[variant].throng_percent - one[than].throng_percent for one in rounds]


def judge(rounds, goals):
    core = "% of a core"
    goals.add("a page looked at: throng", more(rounds, LOOKED_AT, OFF), core, 2)
    browsers = [one[LOOKED_AT].browser for one in rounds]
    goals.add("a page looked at: Chromium", browsers, core, 20)
    scrapes_ms = [1000 * seconds for one in rounds for seconds in one[SCRAPED].scrapes_s]
    goals.add("a scrape", scrapes_ms, "ms", 20)
    goals.add("a scrape each second: throng", more(rounds, SCRAPED, OFF), core)
    goals.add("series of a scrape", [one[SCRAPED].series for one in rounds], "series", 2000, 0)
    left_out = [one[SCRAPED].left_out for one in rounds]
    goals.add("series left out of it", left_out, "series", digits=0)
    goals.add("flags that nobody asks: throng", more(rounds, UNASKED, OFF), core)
    if BEFORE in rounds[0]:
        goals.add("no flags, more than before there were any", more(rounds, OFF, BEFORE), core, 0.5)
        threads = [one[OFF].threads - one[BEFORE].threads for one in rounds]
        goals.add("threads, more than before there were any", threads, "threads", 0, 0)


def table(rounds, size):
    lines = [
        f"{size.viewers:,} viewers of the stage's low card, {size.threads:,} threads watched; "
        f"windows of {size.window_s} s, {size.rounds} for each row:",
        "",
        "| Run | throng, % | Chromium, % | threads | steal, % | generator the limit |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for variant in rounds[0]:
        of = [one[variant] for one in rounds]
        browser = spread([one.browser for one in of], 1) if of[0].browser is not None else ""
        lines.append(
            f"| {variant} | {spread([one.throng_percent for one in of], 1)} | {browser} "
            f"| {statistics.median([one.threads for one in of]):.0f} "
            f"| {max(one.stolen_percent for one in of):.1f} "
            f"| {sum(one.is_limited for one in of)} of {len(of)} |"
        )
    return "\n".join(lines)
