#!/usr/bin/python3
"""A chat over server-sent events, written without throng and with Python's standard library only;
and servers that do not behave.

usage: events.py HOW

What is said is posted to /rooms/ROOM/say and comes back on /rooms/ROOM/events?as=NICK, to
everybody. HOW is `well`, or how it misbehaves: `forgetful` ends each stream after two seconds and
sends what was missed after Last-Event-ID, `done` answers 204 the second time, `html` is no event
stream, `full` refuses the join, `silent` does not answer it, `garbage` sends bytes that are no
text. It listens on a free port of 127.0.0.1 and prints it.
"""

import json
import queue
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOW = sys.argv[1]
lock = threading.Lock()
streams = {}
history = []
asked = {}


def publish(name, data, ends="\n"):
    """To all streams, in one order."""
    with lock:
        history.append((name, data))
        number = len(history)
        for stream in streams.values():
            stream.put((number, name, data, ends))


class Room(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body="", kind="application/json"):
        bytes_ = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(bytes_)))
        self.end_headers()
        self.wfile.write(bytes_)

    def chunk(self, text):
        bytes_ = text if isinstance(text, bytes) else text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(bytes_), bytes_))
        self.wfile.flush()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        nick = urllib.parse.parse_qs(url.query).get("as", [""])[0]
        asked[nick] = asked.get(nick, 0) + 1
        if HOW == "html":
            return self.answer(200, "<h1>hello</h1>", "text/html")
        if HOW == "done" and asked[nick] > 1:
            return self.answer(204)
        mine = queue.Queue()
        last = self.headers.get("Last-Event-ID")
        # Before the head of the response: who has seen that joins at once, and is to hear it.
        with lock:
            missed = list(enumerate(history, 1))[int(last):] if last else []
            streams[nick] = mine
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.stream(mine, missed)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with lock:
                if streams.get(nick) is mine:
                    del streams[nick]

    def stream(self, mine, missed):
        # A byte order mark, a comment, and three kinds of line ends, as the standard allows.
        self.chunk("\ufeff: welcome\r\nretry: 300\r\n\r\n")
        if HOW == "garbage":
            self.chunk(b"event: joined\ndata: \xff\xfe\x00\n\nid: \x00\ndata\r\n\rnonsense\n\n")
        for number, (name, data) in missed:
            self.chunk(f"id: {number}\nevent: {name}\ndata: {data}\n\n")
        ends = time.monotonic() + (2 if HOW in ("forgetful", "done") else 3600)
        while time.monotonic() < ends:
            try:
                number, name, data, end = mine.get(
                    timeout=min(1, max(0.01, ends - time.monotonic()))
                )
            except queue.Empty:
                self.chunk(": still here\n\n")
                continue
            # In two pieces, in the middle of a line.
            text = end.join([f"id: {number}", f"event: {name}", f"data: {data}", "", ""])
            self.chunk(text[:9])
            self.chunk(text[9:])
        self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kind = self.headers.get("Content-Type")
        if kind != "application/json" or self.headers.get("Authorization") != "Bearer hush":
            return self.answer(401, json.dumps({"error": f"who are you? {kind}"}))
        message, action = json.loads(body), self.path.rsplit("/", 1)[1]
        if action == "join":
            if HOW == "full":
                return self.answer(403, json.dumps({"error": "the room is full"}))
            if HOW == "silent":
                time.sleep(30)
            publish("joined", json.dumps({"nick": message["as"]}), "\r\n")
            return self.answer(204)
        if action == "say":
            publish(
                "message",
                json.dumps({"from": message["as"], "text": message["text"]}),
                "\r" if len(history) % 2 else "\n",
            )
            return self.answer(200, '{"ok":true}')
        if action == "leave":
            publish("left", json.dumps({"nick": message["as"]}))
            return self.answer(204)
        self.answer(404)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


server = Server(("127.0.0.1", 0), Room)
print(server.server_address[1], flush=True)
server.serve_forever()
