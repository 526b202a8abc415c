#!/usr/bin/python3
"""Plays an HLS URL in N tabs of headless Chromium by hls.js and prints what each player did, as one
JSON document.

usage: browsers.py N URL SECONDS [--spacing S] [--config JSON] [--quic HOST:PORT]
                                 [--screenshot PNG] [--brief]

Each tab has a browser context of its own, so its own connections and cache. All times of a player
are milliseconds since hls.js was given the URL. Chromium resolves no other host than that of the
URL.
Debian: chromium python3-websockets openssl npm. hls.js is fetched with npm once and kept in
~/.cache/throng.
"""

import argparse
import asyncio
import base64
import http.server
import itertools
import json
import os
import pathlib
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import urllib.parse

import websockets

HLS_JS = "1.7.4"
HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "throng"
FLAGS = [
    "--headless=new",
    "--disable-gpu",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
    # A tab in the background plays as one in front.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    # Nothing but the players uses the network.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-features=MediaRouter,OptimizationHints,SpareRendererForSitePerProcess,Translate",
    "--remote-debugging-port=0",
]


def arguments():
    parser = argparse.ArgumentParser(
        usage=__doc__.split("\n\n")[1].removeprefix("usage: "), description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("tabs", metavar="N", type=int)
    parser.add_argument("url", metavar="URL")
    parser.add_argument("seconds", metavar="SECONDS", type=float, help="how long each tab plays")
    parser.add_argument(
        "--spacing", metavar="S", type=float, default=0.0, help="seconds between the starts of tabs"
    )
    parser.add_argument(
        "--config",
        metavar="JSON",
        type=json.loads,
        default={},
        help="keys of hls.js that are not its defaults",
    )
    parser.add_argument(
        "--quic",
        metavar="HOST:PORT",
        help="an origin that is asked by HTTP/3 from the first request on",
    )
    parser.add_argument(
        "--screenshot", metavar="PNG", help="a picture of the first tab at the end of its time"
    )
    parser.add_argument(
        "--brief",
        action="store_true",
        help="without the lists of requests, fragments, playlists, samples",
    )
    return parser.parse_args()


def hls_js():
    """The folder that has hls.min.js."""
    folder = CACHE / f"hls.js-{HLS_JS}"
    if not (folder / "hls.min.js").exists():
        print(f"Fetching hls.js {HLS_JS} (once)", file=sys.stderr)
        with tempfile.TemporaryDirectory() as work:
            subprocess.run(
                ["npm", "pack", "--silent", f"hls.js@{HLS_JS}"],
                cwd=work,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            with tarfile.open(next(pathlib.Path(work).glob("*.tgz"))) as package:
                script = package.extractfile("package/dist/hls.min.js").read()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hls.min.js").write_bytes(script)
    return folder


class Pages(http.server.SimpleHTTPRequestHandler):
    """The page and the player's script. Its origin is not that of the stream, as with object
    storage."""

    scripts = None

    def translate_path(self, path):
        name = path.split("?")[0].lstrip("/")
        return str(self.scripts / name if name == "hls.min.js" else HERE / "player.html")

    def log_message(self, *_):
        pass


def certificate_flags(url):
    """The flag by which Chromium accepts the certificate that this server has now, and no other."""
    if url.scheme != "https":
        return []
    certificate = ssl.get_server_certificate((url.hostname, url.port or 443))
    key = subprocess.run(
        ["openssl", "x509", "-pubkey", "-noout"],
        input=certificate.encode(),
        capture_output=True,
        check=True,
    )
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "der"],
        input=key.stdout,
        capture_output=True,
        check=True,
    )
    digest = subprocess.run(
        ["openssl", "dgst", "-sha256", "-binary"], input=der.stdout, capture_output=True, check=True
    )
    return [f"--ignore-certificate-errors-spki-list={base64.b64encode(digest.stdout).decode()}"]


class Browser:
    """A Chromium and its DevTools connection."""

    async def start(self, flags):
        program = next(
            filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None
        )
        if program is None:
            sys.exit("there is no Chromium (apt install chromium)")
        self.folder = tempfile.mkdtemp(prefix="throng-browsers-")
        if os.getuid() == 0:
            flags = [*flags, "--no-sandbox"]
        command = [program, *FLAGS, *flags, f"--user-data-dir={self.folder}", "about:blank"]
        self.log = open(pathlib.Path(self.folder) / "log", "w+")
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=self.log, start_new_session=True
        )
        port_file = pathlib.Path(self.folder) / "DevToolsActivePort"
        for _ in range(300):
            if port_file.exists() and port_file.read_text().count("\n"):
                break
            if self.process.poll() is not None:
                self.log.seek(0)
                sys.exit(f"Chromium ended: {self.log.read()[-1000:]}")
            await asyncio.sleep(0.1)
        else:
            sys.exit("Chromium did not start within 30 s")
        port, path = port_file.read_text().split("\n")[:2]
        self.socket = await websockets.connect(
            f"ws://127.0.0.1:{port}{path}", max_size=None, ping_interval=None
        )
        self.numbers, self.waiting, self.handlers = itertools.count(1), {}, {}
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        try:
            async for text in self.socket:
                message = json.loads(text)
                if "id" in message:
                    future = self.waiting.pop(message["id"])
                    if not future.done():
                        future.set_result(message)
                elif message.get("sessionId") in self.handlers:
                    self.handlers[message["sessionId"]](message["method"], message["params"])
        except websockets.ConnectionClosed:
            pass
        finally:
            for future in self.waiting.values():
                future.cancel()

    async def call(self, method, session=None, **parameters):
        number = next(self.numbers)
        self.waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        await self.socket.send(json.dumps(message))
        answer = await self.waiting[number]
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    async def evaluate(self, session, expression):
        result = await self.call(
            "Runtime.evaluate",
            session,
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in result:
            raise RuntimeError(
                result["exceptionDetails"]
                .get("exception", {})
                .get("description", "exception in the page")
            )
        return result["result"].get("value")

    def cpu_seconds(self):
        """Of all processes that this Chromium has now."""
        parents, ticks = {}, {}
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            pid = int(path.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
        ours = {self.process.pid}
        while True:
            more = {pid for pid, parent in parents.items() if parent in ours} - ours
            if not more:
                return sum(ticks.get(pid, 0) for pid in ours) / os.sysconf("SC_CLK_TCK")
            ours |= more

    async def stop(self):
        try:
            await asyncio.wait_for(self.call("Browser.close"), 5)
        except (
            AttributeError,
            asyncio.TimeoutError,
            asyncio.CancelledError,
            RuntimeError,
            websockets.WebSocketException,
        ):
            pass
        try:
            await asyncio.to_thread(self.process.wait, 10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Requests:
    """The requests of one tab, from the events of the DevTools domain Network."""

    def __init__(self, page):
        self.page, self.requests, self.by_id = page, [], {}

    def handle(self, method, event):
        if method == "Network.requestWillBeSent":
            url = event["request"]["url"]
            if url.startswith(self.page) or not url.startswith("http"):
                return
            parts = urllib.parse.urlsplit(url)
            request = {
                "path": parts.path + (f"?{parts.query}" if parts.query else ""),
                "sent": event["timestamp"],
                "wall": event["wallTime"],
                "bytes": 0,
                "wire_bytes": None,
                "status": None,
                "protocol": None,
            }
            self.by_id[event["requestId"]] = request
            self.requests.append(request)
            return
        request = self.by_id.get(event.get("requestId"))
        if request is None:
            return
        if method == "Network.responseReceived":
            response = event["response"]
            request.update(
                status=response["status"],
                protocol=response.get("protocol"),
                connection=response.get("connectionId"),
            )
            timing = response.get("timing")
            request["answered"] = (
                timing["requestTime"] + timing["receiveHeadersEnd"] / 1000
                if timing
                else event["timestamp"]
            )
        elif method == "Network.dataReceived":
            request["bytes"] += event["dataLength"]
        elif method in ("Network.loadingFinished", "Network.loadingFailed"):
            request["done"] = event["timestamp"]
            request["wire_bytes"] = event.get("encodedDataLength")
            if method == "Network.loadingFailed":
                request["failed"] = "cancelled" if event.get("canceled") else event.get("errorText")

    def since(self, wall):
        """With times in milliseconds since this time of day."""

        def relative(request, name):
            moment = request.get(name)
            return (
                None
                if moment is None
                else round((request["wall"] - wall + moment - request["sent"]) * 1000, 1)
            )

        connections = {}
        return [
            {
                "path": request["path"],
                "start_ms": relative(request, "sent"),
                "answer_ms": relative(request, "answered"),
                "end_ms": relative(request, "done"),
                # Of the body, decoded; and as received, with the headers.
                "bytes": request["bytes"],
                "wire_bytes": request["wire_bytes"],
                "status": request["status"],
                "protocol": request["protocol"],
                # Numbered in the order in which this player used them.
                "connection": connections.setdefault(request.get("connection"), len(connections)),
                **({"failed": request["failed"]} if "failed" in request else {}),
            }
            for request in self.requests
        ]


def median(samples, name):
    values = [sample[name] for sample in samples if sample[name] is not None]
    return round(statistics.median(values), 3) if values else None


async def player(browser, page, number, options):
    await asyncio.sleep(number * options.spacing)
    context = (await browser.call("Target.createBrowserContext"))["browserContextId"]
    target = (await browser.call("Target.createTarget", url=page, browserContextId=context))[
        "targetId"
    ]
    session = (await browser.call("Target.attachToTarget", targetId=target, flatten=True))[
        "sessionId"
    ]
    requests = Requests(page)
    browser.handlers[session] = requests.handle
    # The bodies of answers are not kept for us.
    await browser.call("Network.enable", session, maxTotalBufferSize=0, maxResourceBufferSize=0)
    for _ in range(600):
        if await browser.evaluate(
            session, "document.readyState === 'complete' && typeof play === 'function'"
        ):
            break
        await asyncio.sleep(0.05)
    else:
        raise RuntimeError("the page of the player did not load within 30 s")
    play = f"play({json.dumps(options.url)}, {json.dumps(options.config)})"
    call = f"{play}; (performance.timeOrigin + began) / 1000"
    wall = await browser.evaluate(session, call)
    await asyncio.sleep(options.seconds)
    if options.screenshot and number == 0:
        picture = await browser.call("Page.captureScreenshot", session)
        pathlib.Path(options.screenshot).write_bytes(base64.b64decode(picture["data"]))
    seen = await browser.evaluate(session, "finish()")
    lists = {name: seen.pop(name) for name in ("fragments", "playlists", "samples")}
    version = seen.pop("version")
    stalls = seen.pop("stalls")
    answer = {
        "player": number,
        "began": round(wall, 3),
        **seen,
        "stall_count": len(stalls),
        "stall_ms": sum(stall["ms"] for stall in stalls),
        "stalls": stalls,
        "latency_s": median(lists["samples"], "latency"),
        "pdt_latency_s": median(lists["samples"], "pdt_latency"),
        "buffer_s": median(lists["samples"], "buffer"),
        "level_switches": max(0, len(seen["levels"]) - 1),
    }
    if not options.brief:
        answer |= {"requests": requests.since(wall), **lists}
    return version, answer


async def run(options):
    url = urllib.parse.urlsplit(options.url)
    if not url.hostname:
        sys.exit(f"{options.url} is not a URL with a host")
    Pages.scripts = hls_js()
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    page = f"http://127.0.0.1:{pages.server_port}/"
    flags = certificate_flags(url)
    # Chromium takes ::1 for localhost, where no part of the test server is.
    known = "" if url.hostname in ("localhost", "127.0.0.1") else f", EXCLUDE {url.hostname}"
    flags.append(
        f"--host-resolver-rules=MAP localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1{known}"
    )
    if options.quic:
        flags += ["--enable-quic", f"--origin-to-force-quic-on={options.quic}"]
    browser = Browser()
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    try:
        await browser.start(flags)
        product = (await browser.call("Browser.getVersion"))["product"]
        ended = await asyncio.gather(
            *(player(browser, page, number, options) for number in range(options.tabs))
        )
        cpu = browser.cpu_seconds()
    finally:
        if hasattr(browser, "process"):
            await browser.stop()
        pages.shutdown()
    return {
        "url": options.url,
        "seconds": options.seconds,
        "spacing": options.spacing,
        "config": options.config,
        "hls.js": ended[0][0],
        "browser": product,
        "cpu_seconds": round(cpu, 1),
        "players": [answer for _, answer in ended],
    }


if __name__ == "__main__":
    # A stop by a signal ends Chromium too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    json.dump(asyncio.run(run(arguments())), sys.stdout, indent=1)
    print()
