#!/usr/bin/python3
"""Opens the watch page of an evening in N tabs of headless Chromium and prints what each did, as
one JSON document.

usage: browsers.py N SECONDS [--url URL] [--spacing S] [--say S] [--frames FILE]
                             [--screenshot PNG] [--hidden] [--brief]

Each tab is a viewer of its own: player with P2P, heartbeats, socket.io, tracker, ConverseJS in the
room. The page is the evening's, or that of --url. After `stand.sh state recorded` it has a
recording, without socket.io and chat. `per_viewer` is the mean of all tabs: requests by route and
WebSocket frames by kind in the first 30 s, and per minute after them. Debian: chromium
python3-websockets openssl.
"""

import argparse
import asyncio
import base64
import collections
import importlib.util
import json
import os
import pathlib
import re
import signal
import statistics
import sys
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location(
    "live_browsers", HERE.parent / "live-stand" / "browsers.py"
)
live = importlib.util.module_from_spec(spec)
spec.loader.exec_module(live)

FLAGS = [
    # Peers are on this machine: their addresses need no hiding, and there is no mDNS to find them
    # by.
    "--allow-loopback-in-peer-connection",
    "--disable-features=WebRtcHideLocalIpsWithMdns,MediaRouter,OptimizationHints,"
    "SpareRendererForSitePerProcess,Translate,IntensiveWakeUpThrottling",
]


def arguments():
    first = os.environ.get("THRONG_STAND_PORT", "18500")
    parser = argparse.ArgumentParser(
        usage=__doc__.split("\n\n")[1].removeprefix("usage: "), description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("tabs", metavar="N", type=int)
    parser.add_argument("seconds", metavar="SECONDS", type=float, help="how long each tab is open")
    parser.add_argument(
        "--url",
        default=f"http://127.0.0.1:{first}/w/kEsjeaVCtdtvQpW4d9ndbm",
        help="of the watch page",
    )
    parser.add_argument(
        "--spacing", metavar="S", type=float, default=1.0, help="seconds between the starts of tabs"
    )
    parser.add_argument(
        "--say",
        metavar="S",
        type=float,
        help="each says something in the chat after so many seconds, and again",
    )
    parser.add_argument(
        "--frames",
        metavar="FILE",
        help="where each WebSocket frame of the tabs is written, a JSON object a line",
    )
    parser.add_argument(
        "--screenshot", metavar="PNG", help="a picture of the first tab at the end of its time"
    )
    parser.add_argument(
        "--hidden",
        action="store_true",
        help="not drawn once it plays and is in its chat: for many tabs on a few cores",
    )
    parser.add_argument("--brief", action="store_true", help="without the requests of each tab")
    return parser.parse_args()


# What can be read from a page that is not the evening's: the requests and frames are counted there
# as well.
FOREIGN = """(() => {
  const video = document.querySelector("video")
  return {
    startup_ms: null, stalls: [], http_bytes: 0, p2p_bytes: 0, latency: [], pdt_latency: [],
    chat: { joined_ms: null }, position: video?.currentTime ?? 0, paused: video?.paused ?? true,
    frames: video?.getVideoPlaybackQuality().totalVideoFrames ?? 0,
  }
})()"""
JOIN = 30.0


def route_of(method, path):
    """Without what differs from viewer to viewer and from segment to segment."""
    path = path.split("?")[0] + (" polling" if path.startswith("/socket.io") else "")
    path = re.sub(
        r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=/videos/)[1-9A-HJ-NP-Za-km-z]{22}|(?<=/w/)[^/]+",
        ":id",
        path,
    )
    path = re.sub(r"(?<=/livechat/)[0-9.]+(?=/)", ":version", path)
    return f"{method} {re.sub(r'(?<=/)[0-9]+-[0-9]+(?=[.]ts)', ':n', path)}"


def socket_of(url):
    path = urllib.parse.urlsplit(url).path
    return (
        "tracker"
        if path.startswith("/tracker/")
        else "socket.io" if path.startswith("/socket.io") else "chat" if "xmpp" in path else path
    )


def kind_of(socket, text):
    """What a frame is: enough to count by."""
    if socket == "tracker":
        try:
            message = json.loads(text)
        except ValueError:
            return "other"
        if "answer" in message:
            return "answer"
        if "offer" in message:
            return "offer"
        return (
            "failure"
            if "failure reason" in message
            else f"announce {message['event']}" if "event" in message else "announce"
        )
    if socket == "socket.io":
        name = re.match(r'42[^\[]*\["([^"]+)"', text)
        return name[1] if name else re.match(r"[0-9a-z]*", text)[0] or "other"
    name = re.match(r"<([\w:]+)", text)
    space = re.search(
        r"xmlns=['\"]([^'\"]*(?:vcard-temp|mam:2|disco#info|disco#items|muc|muc#user|ping|roster|"
        r"carbons:2))['\"]",
        text,
    )
    of = f" {space[1]}" if space and name and name[1] == "iq" else ""
    return f"{name[1] if name else 'other'}{of}"


class Viewer(live.Requests):
    """Requests of one tab, and the frames of its WebSockets."""

    def __init__(self, number, out):
        super().__init__("about:")
        self.number, self.out, self.sockets = number, out, {}
        self.frames, self.times, self.first = collections.defaultdict(lambda: [0, 0]), [], None
        self.console = []

    def handle(self, method, event):
        if self.first is None and method == "Network.requestWillBeSent":
            self.first = event["timestamp"]
        if method == "Network.webSocketCreated":
            self.sockets[event["requestId"]] = socket_of(event["url"])
        elif method in ("Network.webSocketFrameSent", "Network.webSocketFrameReceived"):
            socket = self.sockets.get(event["requestId"], "other")
            text = event["response"]["payloadData"]
            size = len(text.encode())
            direction = "sent" if method.endswith("Sent") else "received"
            kind = kind_of(socket, text)
            count = self.frames[socket, direction, kind]
            count[0] += 1
            count[1] += size
            self.times.append(
                (event["timestamp"] - self.first, f"{socket} {direction}: {kind}", size)
            )
            if self.out:
                one = {
                    "at": event["timestamp"],
                    "player": self.number,
                    "socket": socket,
                    "direction": direction,
                    "bytes": size,
                }
                self.out.write(json.dumps({**one, "kind": kind, "text": text[:4000]}) + "\n")
        elif method == "Runtime.exceptionThrown":
            detail = event["exceptionDetails"]
            self.console.append(
                detail.get("exception", {}).get("description", detail["text"])[:300]
            )
        else:
            super().handle(method, event)
            if (
                method == "Network.requestWillBeSent"
                and "postData" in event["request"]
                and event["requestId"] in self.by_id
            ):
                self.by_id[event["requestId"]].update(
                    body=event["request"]["postData"], method=event["request"]["method"]
                )

    def since(self, wall):
        """With what was posted, of which long texts are cut."""
        bodies = [request.get("body") for request in self.requests]
        return [
            {**one, **({"body": body[:500]} if body else {})}
            for one, body in zip(super().since(wall), bodies)
        ]

    def events(self):
        """Seconds since the navigation, name, bytes: of each request with its headers, of each
        frame without its own."""
        yield from self.times
        for request in self.requests:
            size = request["wire_bytes"] if request["wire_bytes"] is not None else request["bytes"]
            yield request["sent"] - self.first, route_of(
                request.get("method", "GET"), request["path"]
            ), size

    def counted(self):
        answer = {}
        for (socket, direction, kind), (count, size) in sorted(self.frames.items()):
            answer.setdefault(socket, {}).setdefault(direction, {})[kind] = {
                "frames": count,
                "bytes": size,
            }
        return answer


async def hide(browser, target, session):
    """Minimises the window of a tab that plays and is in the chat, if it has one. Before that
    Chromium would not open its media; what is muted it would pause (the browser as a whole is
    mute)."""
    ready = "!!(window.seen?.startup_ms && (seen.chat.none || seen.chat.joined_ms))"
    while not await browser.evaluate(session, ready):
        await asyncio.sleep(0.5)
    await browser.evaluate(session, "document.querySelector('video').muted = false")
    window = (await browser.call("Browser.getWindowForTarget", targetId=target))["windowId"]
    await browser.call(
        "Browser.setWindowBounds", windowId=window, bounds={"windowState": "minimized"}
    )


async def player(browser, number, options, out):
    await asyncio.sleep(number * options.spacing)
    context = (await browser.call("Target.createBrowserContext"))["browserContextId"]
    target = (
        await browser.call("Target.createTarget", url="about:blank", browserContextId=context)
    )["targetId"]
    session = (await browser.call("Target.attachToTarget", targetId=target, flatten=True))[
        "sessionId"
    ]
    viewer = Viewer(number, out)
    browser.handlers[session] = viewer.handle
    await browser.call("Network.enable", session, maxTotalBufferSize=0, maxResourceBufferSize=0)
    await browser.call("Runtime.enable", session)
    began = time.time()
    await browser.call("Page.navigate", session, url=options.url)
    ends = began + options.seconds
    hiding = asyncio.create_task(hide(browser, target, session)) if options.hidden else None
    said = 0
    while (left := ends - time.time()) > 0:
        await asyncio.sleep(min(left, options.say or left))
        if options.say and time.time() < ends:
            said += await browser.evaluate(
                session, f"window.say ? (say('viewer {number}, message {said}'), 1) : 0"
            )
    if hiding:
        hiding.cancel()
    if options.screenshot and number == 0:
        picture = await browser.call("Page.captureScreenshot", session)
        pathlib.Path(options.screenshot).write_bytes(base64.b64decode(picture["data"]))
    seen = await browser.evaluate(session, f"window.finish ? finish() : {FOREIGN}")
    latency, pdt_latency = seen.pop("latency"), seen.pop("pdt_latency")
    # The end of a page is a part of what a server sees: sockets close.
    await browser.call("Target.closeTarget", targetId=target)
    total = seen["http_bytes"] + seen["p2p_bytes"]
    return viewer, {
        "player": number, "began": round(began, 3), "said": said, **seen,
        "latency_s": statistics.median(latency) if latency else None,
        "pdt_latency_s": statistics.median(pdt_latency) if pdt_latency else None,
        "p2p_share": round(seen["p2p_bytes"] / total, 3) if total else None,
        "exceptions": viewer.console, "frames": viewer.counted(),
        **({} if options.brief else {"requests": viewer.since(began)}),
    }  # fmt: skip


async def run(options):
    url = urllib.parse.urlsplit(options.url)
    known = "" if url.hostname in ("localhost", "127.0.0.1") else f", EXCLUDE {url.hostname}"
    flags = [
        *FLAGS,
        *live.certificate_flags(url),
        f"--host-resolver-rules=MAP localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1{known}",
    ]
    out = open(options.frames, "w") if options.frames else None
    browser = live.Browser()
    try:
        await browser.start(flags)
        product = (await browser.call("Browser.getVersion"))["product"]
        ended = await asyncio.gather(
            *(player(browser, number, options, out) for number in range(options.tabs))
        )
        cpu = browser.cpu_seconds()
    finally:
        if hasattr(browser, "process"):
            await browser.stop()
        if out:
            out.close()
    players = [answer for _, answer in ended]
    joins, after = collections.defaultdict(lambda: [0, 0]), collections.defaultdict(lambda: [0, 0])
    for viewer, _ in ended:
        for at, name, size in viewer.events():
            count = (joins if at < JOIN else after)[name]
            count[0] += 1
            count[1] += size
    minutes = max(0.0, options.seconds - JOIN) / 60

    def mean(counts, by):
        return [round(counts[0] / by, 2), round(counts[1] / by)] if by else None

    per_viewer = {
        name: {
            "first_30_s": mean(joins[name], options.tabs),
            "per_minute_after": mean(after[name], options.tabs * minutes),
        }
        for name in sorted({*joins, *after})
    }
    http, p2p = sum(one["http_bytes"] for one in players), sum(one["p2p_bytes"] for one in players)
    return {
        "url": options.url, "seconds": options.seconds, "spacing": options.spacing,
        "browser": product, "cpu_seconds": round(cpu, 1),
        "playing": sum(one["position"] > 0 and not one["paused"] for one in players),
        "in_chat": sum(one["chat"]["joined_ms"] is not None for one in players),
        "stalls": sum(len(one["stalls"]) for one in players),
        "http_bytes": http, "p2p_bytes": p2p,
        "p2p_share": round(p2p / (http + p2p), 3) if http + p2p else None,
        "per_viewer": per_viewer,
        "players": players,
    }  # fmt: skip


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    json.dump(asyncio.run(run(arguments())), sys.stdout, indent=1)
    print()
