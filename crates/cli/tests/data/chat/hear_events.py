#!/usr/bin/python3
"""Listens in a room of events.py and prints what it hears, independently of throng and of that
server: `ARRIVED TEXT`, a line each.

usage: hear_events.py http://HOST:PORT/rooms/ROOM/events SECONDS

ARRIVED is seconds since 1970. `joined` is printed when the stream is open. Nothing but Python's
standard library.
"""

import json
import sys
import time
import urllib.request

url, seconds = sys.argv[1], float(sys.argv[2])
response = urllib.request.urlopen(
    urllib.request.Request(url + "?as=listener", headers={"Accept": "text/event-stream"}),
    timeout=seconds,
)
print("joined", flush=True)
ends, name, data = time.time() + seconds, "message", []
# Universal newlines are the line ends of event streams.
import io

lines = io.TextIOWrapper(response, encoding="utf-8-sig", newline=None)
try:
    for line in lines:
        line = line.rstrip("\n")
        if time.time() > ends:
            break
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif line == "":
            if data and name == "message":
                print(f"{time.time():.6f} {json.loads(chr(10).join(data))['text']}", flush=True)
            name, data = "message", []
except TimeoutError:
    pass
