#!/usr/bin/python3 -B
"""Lays what tabs asked an evening for beside what as many visitors of throng did, as Markdown.

usage: compare.py BROWSERS THRONG           both from `stand.sh take`
       compare.py --take CONTROL LOG        what `stand.sh take` prints

Requests and bytes are those of nginx' log, by route: answers without their headers, of a WebSocket
all that the browser received, once it has closed. The others are what Node counted: messages, and
what the players said of their playback (`playback`). Debian: python3-websockets.
"""

import collections
import datetime
import json
import re
import sys
import time
import urllib.request

from browsers import route_of, socket_of

# What only a browser loads, in one row.
CLIENT = re.compile("/client/|/static/conversejs/")
# Of a moment, or in the rows of nginx too.
NO_ROWS = ("version", "state", "viewers", "uuid", "shortUUID", "swarms", "subscribers", "since")
# nginx writes its log once a second.
FLUSHED = 2


def row_of(method, uri, status):
    if status == 101:
        return f"WebSocket {socket_of(uri)}"
    if CLIENT.search(uri):
        return "scripts and styles"
    # The plugin's routes are with its version and without.
    route = route_of(method, uri).replace("/:version", "")
    return route if status < 400 else f"{route} {status}"


def requests(log, since):
    rows = collections.defaultdict(lambda: [0, 0])
    for line in open(log, errors="replace"):
        ended, _, method, uri, status, size, *_ = line.split("\t")
        if float(ended) >= since:
            row = rows[row_of(method, uri, int(status))]
            row[0] += 1
            row[1] += int(size)
    return rows


def flat(counters, name=""):
    """Each number with its path."""
    for key, value in counters.items():
        if isinstance(value, dict):
            yield from flat(value, f"{name}{key}.")
        elif isinstance(value, (int, float)):
            yield name + key, value


def take(control, log):
    time.sleep(FLUSHED)
    counters = json.load(urllib.request.urlopen(f"{control}/counters"))
    since = datetime.datetime.fromisoformat(counters["since"].replace("Z", "+00:00")).timestamp()
    urllib.request.urlopen(f"{control}/reset", data=b"")
    node = {name: value for name, value in counters.items() if name not in (*NO_ROWS, "requests")}
    return {
        "state": counters["state"],
        "since": counters["since"],
        "nginx": requests(log, since),
        "node": dict(flat(node)),
    }


def table(title, browsers, throng):
    print(f"\n| {title} | browsers | throng | |\n|---|---|---|---|")
    for name in sorted({*browsers, *throng}):
        a, b = browsers.get(name, 0), throng.get(name, 0)
        if a or b:
            print(f"| {name} | {a} | {b} | {f'×{b / a:.2f}' if a else ''} |")


def compare(browsers, throng):
    if browsers["state"] != throng["state"]:
        sys.exit(f"one is of {browsers['state']}, the other of {throng['state']}")
    sides = [side["nginx"] for side in (browsers, throng)]
    for place, title in enumerate(["requests", "bytes"]):
        table(title, *({name: row[place] for name, row in side.items()} for side in sides))
    table("counted by Node", browsers["node"], throng["node"])


def main():
    match sys.argv[1:]:
        case ["--take", control, log]:
            json.dump(take(control, log), sys.stdout, indent=1)
            print()
        case [browsers, throng]:
            compare(*(json.load(open(file)) for file in (browsers, throng)))
        case _:
            sys.exit(__doc__.split("\n\n")[1])


if __name__ == "__main__":
    main()
