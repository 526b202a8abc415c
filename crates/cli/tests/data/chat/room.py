#!/usr/bin/python3
"""A small chat that speaks JSON over WebSocket, written without throng; and servers that do not
behave.

usage: room.py HOW

HOW is `well`, or how it misbehaves: `silent`, `refuses`, `floods`, `garbage`, `closes`. It listens
on a free port of 127.0.0.1 and prints it. Debian: python3-websockets.
"""

import asyncio
import json
import sys

import websockets

members = {}


async def well(socket, *_):
    """Joins, passes what is said to everybody, and closes the connection of who does not answer its
    pings."""
    nick, answered = None, True

    async def pings():
        nonlocal answered
        number = 0
        while True:
            await asyncio.sleep(1)
            if not answered:
                await socket.close(1011, "no pong")
                return
            number, answered = number + 1, False
            await socket.send(json.dumps({"type": "ping", "number": number}))

    task = asyncio.create_task(pings())
    try:
        async for frame in socket:
            message = json.loads(frame)
            if "join" in message:
                nick = message["as"]
                members[nick] = socket
                await socket.send(json.dumps({"type": "joined", "room": message["join"]}))
            elif "say" in message and nick:
                text = json.dumps({"type": "message", "from": nick, "text": message["say"]})
                websockets.broadcast(members.values(), text)
            elif message.get("type") == "pong":
                answered = True
    finally:
        task.cancel()
        members.pop(nick, None)


async def silent(socket, *_):
    await asyncio.sleep(600)


async def refuses(socket, *_):
    await socket.recv()
    await socket.send(json.dumps({"type": "error", "reason": "the room is full"}))
    await asyncio.sleep(600)


async def floods(socket, *_):
    await socket.recv()
    for number in range(100_000):
        await socket.send(json.dumps({"type": "noise", "number": number, "text": "[k3f9." * 20}))
    await asyncio.sleep(600)


async def garbage(socket, *_):
    await socket.recv()
    await socket.send(b"\xff\xfe\x00")
    await asyncio.sleep(600)


async def closes(socket, *_):
    message = json.loads(await socket.recv())
    await socket.send(json.dumps({"type": "joined", "room": message["join"]}))
    await asyncio.sleep(2)
    await socket.close(1013, "try again later")


async def main(how):
    async with websockets.serve(globals()[how], "127.0.0.1", 0, ping_interval=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


asyncio.run(main(sys.argv[1]))
