"""A page in headless Chromium, as a reader sees it; driven by choreographer, which kaleido brings along."""

import asyncio
import shutil

import choreographer


def has_browser():
    return any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")))


class Browser:
    """One tab. errors: what the page wrote to its console as errors, and exceptions that it did not catch."""

    def __enter__(self):
        self.loop, self.errors = asyncio.new_event_loop(), []
        self.browser = choreographer.Browser(headless=True)
        self._run(self.browser.open())
        self.tab = self._run(self.browser.create_tab("about:blank"))
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        for event in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.tab.get_session().subscribe(event, self._note)
        return self

    def __exit__(self, *error):
        self._run(self.browser.close())

    def _run(self, work):
        return self.loop.run_until_complete(asyncio.wait_for(work, 120))

    def call(self, command, **parameters):
        return self._run(self.tab.get_session().send_command(command, params=parameters))["result"]

    def open(self, page, *, width=1280, height=900, dark=False):
        self.errors.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self._run(self._load(page.resolve().as_uri()))

    async def _load(self, address):
        loaded = self.tab.get_session().subscribe_once("Page.loadEventFired")
        await self.tab.get_session().send_command("Page.navigate", params={"url": address})
        await loaded
        await asyncio.sleep(0.1)  # events that came with it

    def evaluate(self, expression):
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def _note(self, message):
        event = message["params"]
        if (
            event.get("type", "error") in ("error", "assert")
            and event.get("entry", {}).get("level", "error") == "error"
        ):
            self.errors.append(str(event))
