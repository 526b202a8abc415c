#!/usr/bin/python3
"""Sends segments over a data channel from one tab of headless Chromium to another, and prints what
that cost, as one JSON object.

usage: chromium.py SEGMENTS BYTES

Each tab has a browser context of its own, so a process of its own, as two viewers have. CPU time is
that of all processes of Chromium, less that of the same time in which the two are connected and
send nothing. Debian: chromium python3-websockets.
"""

import asyncio
import importlib.util
import json
import pathlib
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location(
    "live_browsers", HERE.parents[1] / "examples" / "live-stand" / "browsers.py"
)
live = importlib.util.module_from_spec(spec)
spec.loader.exec_module(live)

FLAGS = [
    # Both ends are on this machine: addresses need no hiding, and there is no mDNS to find them by.
    "--allow-loopback-in-peer-connection",
    "--disable-features=WebRtcHideLocalIpsWithMdns,MediaRouter,OptimizationHints,"
    "SpareRendererForSitePerProcess,Translate",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
# Chromium still works on its start, and on the tabs, for some seconds.
SETTLE_S = 5
CONNECT_TIMEOUT_S = 30


class End:
    """One end, in a tab of its own."""

    def __init__(self, browser):
        self.browser = browser

    async def start(self):
        context = (await self.browser.call("Target.createBrowserContext"))["browserContextId"]
        target = (
            await self.browser.call(
                "Target.createTarget", url="about:blank", browserContextId=context
            )
        )["targetId"]
        self.session = (
            await self.browser.call("Target.attachToTarget", targetId=target, flatten=True)
        )["sessionId"]
        await self.browser.evaluate(self.session, (HERE / "end.js").read_text())

    def call(self, function, *arguments):
        given = ", ".join(map(json.dumps, arguments))
        return self.browser.evaluate(self.session, f"end.{function}({given})")


async def connect(browser):
    giver, taker = End(browser), End(browser)
    for end in (giver, taker):
        await end.start()
    await giver.call("accept", await taker.call("answer", await giver.call("offer")))
    await asyncio.wait_for(
        asyncio.gather(giver.call("opened"), taker.call("opened")), CONNECT_TIMEOUT_S
    )
    return giver, taker


async def used(browser, work):
    """CPU time of Chromium, and seconds, while `work` is done."""
    before, began = browser.cpu_seconds(), time.monotonic()
    await work
    return browser.cpu_seconds() - before, time.monotonic() - began


async def measure(segments, length):
    browser = live.Browser()
    try:
        await browser.start(FLAGS)
        product = (await browser.call("Browser.getVersion"))["product"]
        giver, taker = await connect(browser)
        await giver.call("give", length)
        # Code that has run for a while is compiled.
        await taker.call("take", max(1, segments // 10), length)
        await asyncio.sleep(SETTLE_S)
        busy_s, seconds = await used(browser, taker.call("take", segments, length))
        await asyncio.sleep(SETTLE_S)
        idle_s, _ = await used(browser, asyncio.sleep(seconds))
    finally:
        if hasattr(browser, "process"):
            await browser.stop()
    return {
        "name": product, "bytes": segments * length, "seconds": seconds,
        "cpu_s": busy_s - idle_s, "idle_cpu_s": idle_s,
    }  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1])
    # A stop by a signal ends Chromium too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(json.dumps(asyncio.run(measure(*map(int, sys.argv[1:])))))
