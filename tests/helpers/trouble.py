"""Jobs whose worker dies or hangs in the middle, once or always. A stand-in for the function that workers call."""

import functools
import importlib
import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Trouble:
    """of: the module with the function, and its name. what: `kill`, or `hang`; place: where it is noted, and so happens once;
    None: always. job: only to jobs whose words hold this."""

    of: tuple[str, str]
    what: str
    place: Path | None = None
    job: str = ""

    def __call__(self, common, job):
        if self.job in str(job) and self._is_due():
            if self.what == "hang":
                time.sleep(600)
            os.kill(os.getpid(), 9)
        return getattr(importlib.import_module(self.of[0]), self.of[1])(common, job)

    def _is_due(self):
        if self.place is None:
            return True
        try:
            self.place.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def plant(monkeypatch, module, name, what, place=None, job=""):
    """Give workers the troubled function. They import the true one: what is patched here is not patched there."""
    monkeypatch.setattr(f"{module}.{name}", functools.partial(Trouble((module, name), what, place, job)))
