"""A headless Chromium or Chrome, driven through its DevTools pipe with the standard library alone.

It draws figures into files for papers, and tests look at the page with it. Nothing but our own local pages is ever opened.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
START_SECONDS = 60.0


class BrowserFailed(RuntimeError):
    """The browser did not start, went away, or refused a command."""


def find_browser() -> str | None:
    """The program named by `SIDEQUEST_BROWSER`, or the first known one on the PATH."""
    if os.name != "posix":  # the pipe needs descriptors 3 and 4
        return None
    if named := os.environ.get("SIDEQUEST_BROWSER"):
        return shutil.which(named)
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def _high_pipe() -> tuple[int, int]:
    """Both ends of a pipe, as descriptors of at least 10."""
    import fcntl  # not on Windows

    ends = os.pipe()
    try:
        return fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, 10), fcntl.fcntl(ends[1], fcntl.F_DUPFD_CLOEXEC, 10)
    finally:
        for end in ends:
            os.close(end)


class Browser:
    """A browser with one tab. Use it as a context: it ends with its profile.

    errors: what the page wrote to its console as errors, and exceptions that it did not catch.
    """

    def __init__(self, program: str | None = None, *, timeout: float = 60.0) -> None:
        found = program or find_browser()
        if found is None:
            raise BrowserFailed(
                f"no browser found: none of {', '.join(NAMES)} is on the PATH; SIDEQUEST_BROWSER may name one"
            )
        self._program, self._timeout = found, timeout
        self._number, self._session, self._buffer = 0, "", b""
        self._events: list[dict[str, Any]] = []
        self.errors: list[str] = []

    def __enter__(self) -> Browser:
        self._profile = tempfile.TemporaryDirectory(prefix="sidequest-browser-", ignore_cleanup_errors=True)
        # The browser reads commands from descriptor 3 and answers on 4. Ours are kept above, so that none is overwritten.
        (theirs_in, ours_out), (ours_in, theirs_out) = _high_pipe(), _high_pipe()

        def move() -> None:
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        command = [
            self._program,
            "--headless",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._profile.name}",
            "--disable-gpu",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--hide-scrollbars",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # as root it does not start with one
            "about:blank",
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4),
            preexec_fn=move,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = ours_in, ours_out
        try:
            target = self.call("Target.createTarget", {"url": "about:blank"}, timeout=START_SECONDS)["targetId"]
            self._session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
            for domain in ("Page", "Runtime", "Log"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process that this object started, and remove its profile."""
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def open(self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Show a local file in a window of this size and colour scheme, and wait until it has loaded."""
        self.errors.clear()
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", {"features": [scheme]})
        self._events.clear()
        self.call("Page.navigate", {"url": page.resolve().as_uri()})
        end = time.monotonic() + self._timeout
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._read(end)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is awaited."""
        asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        found = self.call("Runtime.evaluate", asked)
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise BrowserFailed(details.get("exception", {}).get("description") or details["text"])
        return found["result"].get("value")

    def screenshot(self, *, whole: bool = False) -> bytes:
        """PNG of the window, or of the whole page."""
        return base64.b64decode(self.call("Page.captureScreenshot", {"captureBeyondViewport": whole})["data"])

    def call(
        self, method: str, parameters: dict[str, Any] | None = None, *, timeout: float | None = None
    ) -> dict[str, Any]:
        """One DevTools command and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters or {}}
        if self._session:
            message["sessionId"] = self._session
        data = memoryview(json.dumps(message).encode() + b"\0")
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except OSError as error:
            raise BrowserFailed(f"{self._program} went away: {error}") from None
        end = time.monotonic() + (timeout or self._timeout)
        while True:
            answer = self._read(end)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserFailed(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _read(self, end: float) -> dict[str, Any]:
        """The next message; events are kept, and errors of the page noted."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            part = os.read(self._in, 1 << 20) if ready else None
            if part is None:
                raise BrowserFailed(f"{self._program} did not answer in time")
            if not part:
                raise BrowserFailed(f"{self._program} ended by itself")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(line)
        if "method" in message:
            self._events.append(message)
            self._note(message["method"], message["params"])
        return message

    def _note(self, method: str, event: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(each.get("value", each.get("description"))) for each in event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] == "error":
            self.errors.append(event["entry"]["text"])
