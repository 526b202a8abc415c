#!/usr/bin/env python3
"""Compares the requests of two kinds of players in the access log of nginx, such as browsers and
throng.

usage: compare.py LOG... --a USER_AGENT --b USER_AGENT [OPTIONS]

A side is what the requests of its user agent contain (--a HeadlessChrome --b throng), within a time
window where one is given. Rates are per second of one player: by --a-players and --a-seconds, or by
--a-browsers, the output of browsers.py. All options exist for a and b:
  --a-players N --a-seconds S    how many played, and for how long each
  --a-browsers FILE              the same and the window, from the output of browsers.py
  --a-run FOLDER                 the same without the window, from a run folder of throng
  --a-window FROM,TO             seconds since 1970, as in the log
A request counts from its start: nginx writes it when it has ended. Its player is its connection.
"""

import argparse
import collections
import json
import pathlib
import re
import statistics
import sys
import urllib.parse

PLAYLISTS = (".m3u8", ".mpd")
Request = collections.namedtuple(
    "Request", "start end protocol method kind status bytes seconds connection agent"
)


def kind_of(path, master):
    """What the path is for, with its rendition: `master`, `playlist 0`, `segment 0`, `part …`,
    `init …`, or `other`."""
    name = pathlib.PurePosixPath(urllib.parse.urlsplit(path).path)
    if name.suffix in PLAYLISTS:
        return (
            "master"
            if master.search(name.stem) or name.suffix == ".mpd"
            else f"playlist {name.stem}"
        )
    if name.suffix not in (".ts", ".m4s", ".mp4", ".aac"):
        return "other"
    if "init" in name.stem:
        return "init"
    # What is left without the number of the segment, and of its part.
    rendition = re.sub(r"[-_.]?\d+(\.\d+)?$", "", name.stem)
    rendition = re.sub(r"^(part|seg|segment|chunk)[-_]?", "", rendition)
    # Some packagers name the start of the session too.
    rendition = re.sub(r"[-_]\d{10,}", "", rendition)
    return f"{'part' if name.stem.startswith('part') else 'segment'} {rendition}".strip()


def requests_of(files, master):
    for file in files:
        with open(file, errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                fields = line.rstrip("\n").split("\t")
                try:
                    end, protocol, method, path, status, size, seconds, connection, agent = fields
                    end, seconds = float(end), float(seconds)
                    kind, status, size = kind_of(path, master), int(status), int(size)
                    yield Request(
                        end - seconds,
                        end,
                        protocol,
                        method,
                        kind,
                        status,
                        size,
                        seconds,
                        connection,
                        agent,
                    )
                except ValueError:
                    sys.exit(
                        f"{file}:{number}: not a line of the log format `requests` of nginx.conf.in"
                    )


Playback = collections.namedtuple(
    "Playback", "players seconds startup_ms stalls_per_minute stall_ratio latency_ms"
)


def of_browsers(ran):
    """The playback of browsers.py's players: hls.js was given the URL at 0."""
    players = ran["players"]
    played = [player for player in players if player["startup_ms"] is not None]
    median = lambda values: (
        statistics.median(values)
        if (values := [one for one in values if one is not None])
        else None
    )  # noqa: E731
    since_startup = sum(player["played_ms"] - player["startup_ms"] for player in played)
    return Playback(
        len(players),
        ran["seconds"],
        median([player["startup_ms"] for player in played]),
        (
            sum(player["stall_count"] for player in players) * 60e3 / since_startup
            if since_startup
            else None
        ),
        sum(player["stall_ms"] for player in players) / since_startup if since_startup else None,
        median([player["pdt_latency_s"] and player["pdt_latency_s"] * 1000 for player in played]),
    )


def of_run(summary):
    """The same of a run of throng, of its summary.json."""
    one = summary["playback"]
    since_startup = one["played_s"] + one["stall_s"]
    return Playback(
        one["players"],
        (since_startup + one["startup_s"]) / one["players"],
        one["startup"]["ms_p50"],
        one["stalls"] * 60 / since_startup if since_startup else None,
        one["stall_ratio"],
        (one["latency"] or {}).get("ms_p50"),
    )


ORDER = ["master", "playlist", "init", "segment", "part", "other"]


class Side:
    def __init__(self, name, options, requests):
        get = lambda option: getattr(options, f"{name}_{option}")  # noqa: E731
        self.agent, window = getattr(options, name), get("window")
        players, seconds, self.playback = get("players"), get("seconds"), None
        if get("browsers"):
            ran = json.loads(pathlib.Path(get("browsers")).read_text())
            self.playback = of_browsers(ran)
            began = [player["began"] for player in ran["players"]]
            window = window or (min(began), max(began) + ran["seconds"])
        if get("run"):
            self.playback = of_run(
                json.loads((pathlib.Path(get("run")) / "summary.json").read_text())
            )
        if self.playback:
            players, seconds = self.playback.players, self.playback.seconds
        if (players is None) != (seconds is None):
            sys.exit(f"--{name}-players and --{name}-seconds belong together")
        self.players, self.player_seconds = players, players * seconds if players else None
        begin, end = window or (0, float("inf"))
        self.requests = sorted(
            one for one in requests if self.agent in one.agent and begin <= one.start <= end
        )
        if not self.requests:
            sys.exit(f"no request of {self.agent!r}" + (" in the window" if window else ""))
        self.connections = collections.defaultdict(list)
        for one in self.requests:
            self.connections[one.connection].append(one)

    def kinds(self):
        return {one.kind for one in self.requests}

    def count(self, kind):
        return sum(one.kind == kind for one in self.requests)

    def bytes(self, kind=None):
        return sum(one.bytes for one in self.requests if kind in (None, one.kind))

    def spacing(self, kind):
        """Seconds between the starts of two requests of a kind that follow each other on a
        connection."""
        result = []
        for requests in self.connections.values():
            starts = [one.start for one in requests if one.kind == kind]
            result += [after - before for before, after in zip(starts, starts[1:])]
        return result

    def answered(self, kind):
        return [one.seconds for one in self.requests if one.kind == kind]

    def after_playlist(self):
        """Seconds from the end of a playlist to the start of the segment that is the connection's
        next request."""
        return [
            after.start - before.end
            for requests in self.connections.values()
            for before, after in zip(requests, requests[1:])
            if before.kind.startswith("playlist") and after.kind.startswith(("segment", "part"))
        ]

    def openings(self, length):
        """The first requests of connections, the most common first, with how many begin so."""
        begun = [
            tuple(one.kind for one in requests[:length]) for requests in self.connections.values()
        ]
        # A connection that has just begun says nothing.
        return collections.Counter(kinds for kinds in begun if len(kinds) == length).most_common(2)


def quantile(values, share):
    """The smallest value that at least this share of the values does not exceed."""
    values = sorted(values)
    return (
        values[max(0, min(len(values) - 1, int(-(-share * len(values) // 1)) - 1))]
        if values
        else None
    )


def number(value, digits=3):
    return (
        "-" if value is None else f"{value:.{digits}f}" if isinstance(value, float) else f"{value}"
    )


def ratio(a, b):
    return "-" if not a or b is None else f"{b / a:.3f}"


def table(title, head, rows):
    rows = [[title, *head], *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(
                [
                    row[0].ljust(widths[0]),
                    *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:])),
                ]
            ).rstrip()
        )
    print()


def arguments():
    parser = argparse.ArgumentParser(
        usage=__doc__.split("\n\n")[1].removeprefix("usage: "),
        description=__doc__.split("\n\n")[0] + "\n\n" + __doc__.split("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("log", metavar="LOG", nargs="+")
    window = lambda text: tuple(map(float, text.split(",", 1)))  # noqa: E731
    for side in "ab":
        parser.add_argument(f"--{side}", required=True, metavar="USER_AGENT")
        parser.add_argument(f"--{side}-players", type=int, metavar="N")
        parser.add_argument(f"--{side}-seconds", type=float, metavar="S")
        parser.add_argument(f"--{side}-browsers", metavar="FILE")
        parser.add_argument(f"--{side}-run", metavar="FOLDER")
        parser.add_argument(f"--{side}-window", type=window, metavar="FROM,TO")
    parser.add_argument(
        "--master",
        type=re.compile,
        default="master",
        metavar="REGEX",
        help="names of multivariant playlists",
    )
    options = parser.parse_args()
    options.master = re.compile(options.master)
    return options


def main():
    options = arguments()
    requests = list(requests_of(options.log, options.master))
    a, b = Side("a", options, requests), Side("b", options, requests)
    for name, side in (("a", a), ("b", b)):
        counted = collections.Counter(one.protocol for one in side.requests)
        protocols = ", ".join(f"{protocol} {count}" for protocol, count in counted.items())
        played = (
            f"{side.players} players, {side.player_seconds:.0f} player-seconds, "
            if side.players
            else ""
        )
        print(f"{name}: {side.agent!r}, {played}{len(side.connections)} connections, {protocols}")
    print()

    rates = a.player_seconds and b.player_seconds
    per = lambda side, value: value / side.player_seconds if rates else value  # noqa: E731
    unit = "/player/s" if rates else ""
    rows = []
    kinds = sorted(a.kinds() | b.kinds(), key=lambda kind: (ORDER.index(kind.split()[0]), kind))
    for kind in [*kinds, None]:
        counts = [side.count(kind) if kind else len(side.requests) for side in (a, b)]
        values = [per(side, count) for side, count in zip((a, b), counts)]
        sizes = [per(side, side.bytes(kind) * 8 / 1000) for side in (a, b)]
        rows.append(
            [kind or "all", *map(str, counts)]
            + ([number(value, 4) for value in values] if rates else [])
            + [ratio(*values), *(number(float(size), 1) for size in sizes), ratio(*sizes)]
        )
    head = [
        "a",
        "b",
        *([f"a{unit}", f"b{unit}"] if rates else []),
        "b/a",
        f"a kbit{unit}",
        f"b kbit{unit}",
        "b/a",
    ]
    table("requests", head, rows)

    rows = []
    playlists = [kind for kind in kinds if kind.startswith("playlist")]
    measures = [
        (f"{kind}, between requests", lambda side, kind=kind: side.spacing(kind))
        for kind in playlists
    ]
    measures += [
        (f"{kind}, until answered", lambda side, kind=kind: side.answered(kind))
        for kind in playlists
    ]
    measures.append(("playlist to segment", Side.after_playlist))
    for name, measure in measures:
        values = [measure(side) for side in (a, b)]
        cells = [
            (
                f"{number(quantile(value, 0.5))} ({number(quantile(value, 0.05))} to"
                f" {number(quantile(value, 0.95))})"
                if value
                else "-"
            )
            for value in values
        ]
        rows.append(
            [
                name,
                *(str(len(value)) for value in values),
                *cells,
                ratio(*(quantile(value, 0.5) for value in values)),
            ]
        )
    table("seconds: median (p5 to p95)", ["a count", "b count", "a", "b", "b/a"], rows)

    if a.playback and b.playback:
        measures = [
            ("startup, ms, median", "startup_ms", 0),
            ("stalls per minute", "stalls_per_minute", 2),
            ("stalled, share of the time since startup", "stall_ratio", 3),
            ("behind the dates of the playlist, ms, median", "latency_ms", 0),
        ]
        values = [
            (name, digits, getattr(a.playback, key), getattr(b.playback, key))
            for name, key, digits in measures
        ]
        rows = [
            [
                name,
                *(number(value if value is None else float(value), digits) for value in pair),
                ratio(*pair),
            ]
            for name, digits, *pair in values
        ]
        table("playback", ["a", "b", "b/a"], rows)

    for name, side in (("a", a), ("b", b)):
        for kinds, count in side.openings(8):
            print(
                f"{name}: {count} of {len(side.connections)} connections begin with"
                f" {', '.join(kinds)}"
            )
    for name, side in (("a", a), ("b", b)):
        failed = collections.Counter(
            f"{one.kind} {one.status}" for one in side.requests if one.status >= 400
        )
        if failed:
            print(
                f"{name}: failed: "
                + ", ".join(f"{what} ({count})" for what, count in sorted(failed.items()))
            )


if __name__ == "__main__":
    main()
