"""The page of a long run: made, loaded, read and zoomed in Chromium."""

import asyncio
import subprocess

import machine
from chromium import tab

PARTICIPANTS, THREADS = 1000, 8
# An answer within a tenth of a second is felt as at once; a page is wanted within a second.
LOAD_GOAL_MS, RESPONSE_GOAL_MS = 1000, 100

# A chart over time, in the middle of the window.
PLOT = """(() => {
  const isOverTime = (plot) => JSON.parse(plot.dataset.points).x == null;
  const isShown = (plot) => plot.getBoundingClientRect().width > 0;
  const plots = [...document.querySelectorAll(".plot.live")].filter(isShown);
  const plot = plots.find(isOverTime);
  plot.scrollIntoView({ block: "center", behavior: "instant" });
  const { left, top, width, height } = plot.getBoundingClientRect();
  return { left, top, width, height };
})()"""
# From the event to the end of the frame that shows what it did: a message comes after its drawing.
TIMED = """void (window.timed = new Promise((done) => document.addEventListener("%s", () => {
  const began = performance.now();
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now() - began);
    port2.postMessage(0);
  });
}, { capture: true, once: true })))"""
LOADED = """(() => {
  const navigation = performance.getEntriesByType("navigation")[0];
  return navigation.loadEventEnd - navigation.responseStart;
})()"""
RESET = "document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))"


async def drag(page, plot):
    """Zooms into the middle of a chart; milliseconds until that is shown, and in how many."""
    y, middle = plot["top"] + plot["height"] / 2, plot["left"] + plot["width"] / 2
    left, right = middle - plot["width"] / 5, middle + plot["width"] / 5
    await page.mouse("mousePressed", left, y, button="left", buttons=1, clickCount=1)
    await page.mouse("mouseMoved", right, y, button="left", buttons=1)
    await page.evaluate(TIMED % "pointerup")
    await page.mouse("mouseReleased", right, y, button="left", clickCount=1)
    ms = await page.evaluate("window.timed")
    zoomed = await page.evaluate("document.querySelectorAll('.plot.zoomed').length")
    if not zoomed:
        raise LookupError("the drag zoomed no chart")
    await page.evaluate(RESET)
    return ms, zoomed


async def read(page, plot, share):
    """Moves the pointer over a chart, whose values all charts then show."""
    await page.evaluate(TIMED % "pointermove")
    x, y = plot["left"] + share * plot["width"], plot["top"] + plot["height"] / 2
    await page.mouse("mouseMoved", x, y)
    return await page.evaluate("window.timed")


async def in_chromium(url, times):
    loads, reads, zooms, charts = [], [], [], 0
    async with tab() as page:
        for _ in range(times):
            await page.load(url)
            loads.append(await page.evaluate(LOADED))
        plot = await page.evaluate(PLOT)
        # What it still does after it was loaded is over.
        await asyncio.sleep(1)
        for number in range(times * 4):
            reads.append(await read(page, plot, 0.1 + 0.8 * (number % 10) / 10))
        for _ in range(times):
            ms, charts = await drag(page, plot)
            zooms.append(ms)
    return loads, reads, zooms, charts


async def measure(given, size, work, goals):
    folder, port = work / "day", machine.free_port()
    writes = [given.watched_run, folder, "--participants", str(PARTICIPANTS),
              "--seconds", str(size.rows_s), "--threads", str(THREADS)]
    subprocess.run(writes, check=True)
    url = f"http://127.0.0.1:{port}/"
    command = [given.throng, "serve", folder, f"127.0.0.1:{port}"]
    with machine.serving(command, url, work / "day.log") as (made_s, body, mb):
        loads, reads, zooms, charts = await in_chromium(url, size.times)
    hours = size.rows_s / 3600
    stored_mb = (folder / "run.db").stat().st_size / 1e6
    goals.add(f"{hours:g} h of rows ({stored_mb:.0f} MB): start to page", [made_s], "s", digits=2)
    goals.add("memory of it", [mb], "MB", digits=0)
    goals.add("its page", [len(body.encode()) / 1e6], "MB", digits=2)
    goals.add("loaded by Chromium, from the first byte", loads, "ms", LOAD_GOAL_MS, 0)
    goals.add(f"zoomed, {charts} charts together", zooms, "ms", RESPONSE_GOAL_MS, 0)
    goals.add("read by the pointer, in all of them", reads, "ms", RESPONSE_GOAL_MS, 0)
