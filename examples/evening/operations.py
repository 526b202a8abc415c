#!/usr/bin/python3
"""Counts the operations in versitygw's access log by kind: in all, and in its last minute.

usage: operations.py LOG [SECONDS]

SECONDS: of the last so many seconds instead of a minute; the log's clock has whole ones.
"""

import collections
import datetime
import re
import sys

LINE = re.compile(
    r"\S+ \S+ \[([^\]]+)\] \S+ \S+ \S+ (?:s3_)?(\S+) (\S+) \S+ (\d+) \S+ (\d+|-) (\d+|-) \S+ \S+"
    r" \S+ (.*)"
)
KINDS = {"ts": "segment", "mp4": "segment", "m3u8": "playlist", "json": "hashes"}


def lines(path):
    for text in open(path, errors="replace"):
        if found := LINE.match(text):
            at, operation, key, status, sent, size, rest = found.groups()
            when = datetime.datetime.strptime(at, "%d/%B/%Y:%H:%M:%S %z").timestamp()
            kind = KINDS.get(key.rsplit(".", 1)[-1], "bucket" if key == "-" else "other")
            agent = "stand" if rest.startswith("stand ") else "viewers"
            number = sent if operation.startswith("Get") else size
            yield when, (agent, operation, kind, status), int(number) if number.isdigit() else 0


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    of_all = list(lines(sys.argv[1]))
    if not of_all:
        return
    end = max(when for when, _, _ in of_all)
    table = collections.defaultdict(lambda: [0, 0, 0, 0])
    for when, key, size in of_all:
        table[key][0] += 1
        table[key][1] += size
        if when > end - seconds:
            table[key][2] += 1
            table[key][3] += size
    print(
        f"{'by':<8} {'operation':<20} {'of':<9} {'status':<6} {'all':>7} {'MB':>8}"
        f" {f'last {seconds:g} s':>11} {'MB':>8}"
    )
    for (agent, operation, kind, status), (count, size, late, late_size) in sorted(table.items()):
        print(
            f"{agent:<8} {operation:<20} {kind:<9} {status:<6} {count:>7} {size / 1e6:>8.2f}"
            f" {late:>11} {late_size / 1e6:>8.2f}"
        )


if __name__ == "__main__":
    main()
