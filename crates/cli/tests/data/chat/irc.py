#!/usr/bin/python3
"""Listens in a channel of IRC over WebSocket and prints what it hears, independently of throng:
`ARRIVED TEXT`, a line each.

usage: irc.py WEBSOCKET CHANNEL SECONDS

ARRIVED is seconds since 1970. `joined` is printed when it is in the channel. Debian:
python3-websockets.
"""

import asyncio
import re
import sys
import time

import websockets


async def main(url, channel, seconds):
    async with websockets.connect(url, origin="http://127.0.0.1", max_size=None) as socket:
        await socket.send("NICK listener")
        await socket.send("USER listener 0 * :listener")
        end = None
        while end is None or end > time.time():
            try:
                line = await asyncio.wait_for(
                    socket.recv(), 20 if end is None else end - time.time()
                )
            except asyncio.TimeoutError:
                break
            arrived = time.time()
            if line.startswith("PING"):
                await socket.send(line.replace("PING", "PONG", 1))
            elif " 001 " in line:
                await socket.send(f"JOIN {channel}")
            elif " 366 " in line:
                end = time.time() + seconds
                print("joined", flush=True)
            said = re.match(r":\S+ PRIVMSG \S+ :(.*)", line)
            if said:
                print(f"{arrived:.6f} {said.group(1)}", flush=True)


asyncio.run(main(*sys.argv[1:3], float(sys.argv[3])))
