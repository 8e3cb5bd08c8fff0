"""The peak of a process's resident memory during a piece of work."""

from __future__ import annotations

from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """`with PeakMemory() as memory: …`, then `memory.peak` and `memory.before`, in bytes; None where the system is not Linux.

    The kernel's own mark is reset at the start, so nothing is sampled and nothing is missed.
    """

    def __init__(self) -> None:
        self.before: int | None = None
        self.peak: int | None = None

    def __enter__(self) -> PeakMemory:
        if CLEAR.exists():
            CLEAR.write_text("5", encoding="ascii")  # see proc(5): resets the peak to what is resident now
            self.before = _mark()
        return self

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            self.peak = _mark()

    @property
    def above(self) -> int | None:
        """How far the peak was above the start."""
        return None if self.peak is None or self.before is None else self.peak - self.before


def _mark() -> int:
    line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
