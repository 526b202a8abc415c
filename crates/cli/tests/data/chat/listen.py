#!/usr/bin/python3
"""Listens in a room of a chat and prints what it hears, independently of throng: `ARRIVED BODY`, a
line each.

usage: listen.py WEBSOCKET DOMAIN ROOM SECONDS

ARRIVED is seconds since 1970. `joined` is printed when it is in the room. Debian:
python3-websockets.
"""

import asyncio
import html
import re
import sys
import time

import websockets


async def main(url, domain, room, seconds):
    async with websockets.connect(url, subprotocols=["xmpp"], max_size=None) as socket:
        opening = f'<open to="{domain}" version="1.0" xmlns="urn:ietf:params:xml:ns:xmpp-framing"/>'

        async def until(text):
            while text not in (frame := await socket.recv()):
                pass
            return frame

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
            f'<presence to="{room}/listener" xmlns="jabber:client"><x'
            f' xmlns="http://jabber.org/protocol/muc"/></presence>'
        )
        await until("code='110'")
        print("joined", flush=True)
        end = time.time() + seconds
        while (left := end - time.time()) > 0:
            try:
                frame = await asyncio.wait_for(socket.recv(), left)
            except asyncio.TimeoutError:
                break
            arrived = time.time()
            body = re.search(r"<body>(.*?)</body>", frame, re.DOTALL)
            if body:
                print(f"{arrived:.6f} {html.unescape(body.group(1))}", flush=True)


asyncio.run(main(*sys.argv[1:4], float(sys.argv[4])))
