"""A tab of headless Chromium, by the browser of examples/live-stand."""

import asyncio
import contextlib
import importlib.util
import pathlib

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
spec = importlib.util.spec_from_file_location("browsers", EXAMPLES / "live-stand" / "browsers.py")
browsers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(browsers)

FLAGS = ["--window-size=1280,900", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
LOADED_WITHIN_S = 60


class Tab:
    """One tab, and the Chromium that it is of."""

    def __init__(self, browser):
        self.browser = browser

    async def open(self):
        target = (await self.browser.call("Target.createTarget", url="about:blank"))["targetId"]
        attached = await self.browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]

    async def load(self, url):
        """Until its load event is over."""
        await self.browser.call("Page.navigate", self.session, url="about:blank")
        await self.until("location.href === 'about:blank'")
        await self.browser.call("Page.navigate", self.session, url=url)
        timing = "performance.getEntriesByType('navigation')[0]"
        await self.until(f"location.href.startsWith({url!r}) && {timing}?.loadEventEnd > 0")

    async def until(self, expression):
        for _ in range(LOADED_WITHIN_S * 20):
            # A page that is left answers nothing.
            with contextlib.suppress(RuntimeError):
                if await self.evaluate(expression):
                    return
            await asyncio.sleep(0.05)
        raise TimeoutError(f"not within {LOADED_WITHIN_S} s: {expression}")

    def evaluate(self, expression):
        return self.browser.evaluate(self.session, expression)

    def mouse(self, kind, x, y, **more):
        return self.browser.call(
            "Input.dispatchMouseEvent", self.session, type=kind, x=x, y=y, **more
        )

    def cpu_s(self):
        """CPU time of all processes of this Chromium."""
        return self.browser.cpu_seconds()


@contextlib.asynccontextmanager
async def tab():
    browser = browsers.Browser()
    try:
        await browser.start(FLAGS)
        one = Tab(browser)
        await one.open()
        yield one
    finally:
        if hasattr(browser, "process"):
            await browser.stop()
