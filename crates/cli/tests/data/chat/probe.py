#!/usr/bin/python3
"""Measures how long messages of a room take, independently of throng: one client says something,
another one waits for it.

usage: probe.py WEBSOCKET DOMAIN ROOM SECONDS EVERY [vcards]

With `vcards` both ask for the vCard of everybody who comes, as ConverseJS with its list of
participants does: the answers and requests are in the way of their messages, on their own
connections.

`joined` is printed when both are in the room, at the end a line for each message: `SAID DELAY`,
seconds since 1970 and milliseconds, or `SAID missing` if it did not come within 10 s after the last
one was said. Debian: python3-websockets.
"""

import asyncio
import re
import sys
import time

import websockets

GRACE_S = 10


async def join(url, domain, room, nick):
    socket = await websockets.connect(url, subprotocols=["xmpp"], max_size=None, ping_interval=None)
    opening = f'<open to="{domain}" version="1.0" xmlns="urn:ietf:params:xml:ns:xmpp-framing"/>'

    async def until(text):
        while text not in await socket.recv():
            pass

    await socket.send(opening)
    await until("mechanisms")
    await socket.send('<auth mechanism="ANONYMOUS" xmlns="urn:ietf:params:xml:ns:xmpp-sasl"/>')
    await until("success")
    await socket.send(opening)
    await until("bind")
    await socket.send(
        '<iq id="b" type="set" xmlns="jabber:client"><bind'
        ' xmlns="urn:ietf:params:xml:ns:xmpp-bind"/></iq>'
    )
    await until("jid")
    await socket.send(
        f'<presence to="{room}/{nick}" xmlns="jabber:client"><x'
        f' xmlns="http://jabber.org/protocol/muc"/></presence>'
    )
    await until("code='110'")
    return socket


async def listen(socket, room, arrived, has_vcards):
    # Everything is read at once, so that the server never waits for this client.
    known = set()
    async for frame in socket:
        now = time.time()
        number = re.search(r"<body>probe (\d+)</body>", frame)
        if number:
            arrived.setdefault(int(number[1]), now)
        if (
            has_vcards
            and frame.startswith("<presence")
            and (of := re.search(rf" from='({re.escape(room)}/[^']*)'", frame))
        ):
            if of[1] not in known:
                known.add(of[1])
                await socket.send(
                    f'<iq id="v{len(known)}" to="{of[1]}" type="get" xmlns="jabber:client"><vCard'
                    f' xmlns="vcard-temp"/></iq>'
                )


async def main(url, domain, room, seconds, every, has_vcards):
    speaker = await join(url, domain, room, "speaker")
    listener = await join(url, domain, room, "listener")
    print("joined", flush=True)
    said, arrived = [], {}
    readers = [listen(listener, room, arrived, has_vcards), listen(speaker, room, {}, has_vcards)]
    tasks = [asyncio.create_task(reader) for reader in readers]
    began = time.time()
    while (due := began + len(said) * every) < began + seconds:
        await asyncio.sleep(max(0, due - time.time()))
        said.append(time.time())
        await speaker.send(
            f'<message to="{room}" type="groupchat" xmlns="jabber:client"><body>probe'
            f' {len(said) - 1}</body></message>'
        )
    until = time.time() + GRACE_S
    while len(arrived) < len(said) and time.time() < until:
        await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    for number, at in enumerate(said):
        delay = f"{(arrived[number] - at) * 1e3:.1f}" if number in arrived else "missing"
        print(f"{at:.3f} {delay}", flush=True)


asyncio.run(main(*sys.argv[1:4], *map(float, sys.argv[4:6]), "vcards" in sys.argv[6:]))
