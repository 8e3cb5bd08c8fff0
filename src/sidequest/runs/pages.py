"""The page at the end of a run: recorded facts, then `report.html`. A run never fails for its page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sidequest.errors import SidequestError, of_the_world
from sidequest.model_settings import ModelSettings
from sidequest.runs.recording import record_run
from sidequest.tasks.suite import Suite


@dataclass(frozen=True)
class WrittenPage:
    """path: where it is; problem: why it is not there."""

    path: Path | None = None
    problem: str | None = None


def write_run_page(
    directory: Path, suite: Suite, name: str, command: str = "", model: ModelSettings | None = None
) -> WrittenPage:
    """Record what readers will want to know and write the page of a run directory. name: of the command, as in `select`. model:
    of the run; None: the suite's own."""
    from sidequest.report.page import write_page  # imports plotly, which a run that is refused does not need

    try:
        record_run(directory, suite, name, command, model)
        return WrittenPage(write_page(directory))
    except Exception as error:  # the results are written: a page that cannot be drawn is no failure of the run
        return WrittenPage(problem=f"no page: {_words(error)}. `sidequest report {directory}` tries again")


def _words(error: Exception) -> str:
    """What went wrong; what the world did, such as a full disk, without a class of Python."""
    known = of_the_world(error) if isinstance(error, OSError | MemoryError) else error
    return str(known) if isinstance(known, SidequestError) else f"{type(error).__name__}: {error}"
