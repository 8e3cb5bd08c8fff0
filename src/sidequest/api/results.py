"""What `select` and `compare` give back: decisions and tables that show themselves and can be trained from."""

from __future__ import annotations

import shutil
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidequest.api.models import Model
from sidequest.errors import SettingsError
from sidequest.formatting import fixed, signed
from sidequest.model_settings import CustomSettings
from sidequest.recipe import Recipe
from sidequest.records import verdicts
from sidequest.records.comparisons import Comparison, Row
from sidequest.runs.final_model import train_source
from sidequest.runs.pages import WrittenPage
from sidequest.runs.sources import best_run, open_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from sidequest.api.tuning import TuneLike
    from sidequest.model_settings import ModelSettings
    from sidequest.progress import Progress
    from sidequest.runs.setup import Setup
    from sidequest.settings import TrainSettings


class Selection:
    """A method's decision: what to train on.

    Attributes:
        recipe: The decision with its evidence, cost and provenance.
        setup: The suite, the model and the training settings that it was made with.
        directory: The run's directory, with its page.
        page: Where the page is, or why it could not be written.
    """

    def __init__(
        self, recipe: Recipe, setup: Setup, directory: Path, page: WrittenPage | None = None, out: Path | None = None
    ) -> None:
        self.recipe = recipe
        self.setup = setup
        self.directory = directory
        self.page = page or WrittenPage()
        self._out = directory if out is None else out

    @property
    def method(self) -> str:
        return self.recipe.method

    @property
    def auxiliaries(self) -> tuple[str, ...]:
        return self.recipe.auxiliaries

    def __repr__(self) -> str:
        chosen = ", ".join(self.recipe.auxiliaries) or "no auxiliary"
        return f"Selection by {self.method}: {self.recipe.primary} with {chosen}; cost {self.recipe.cost.x:.1f}x"

    def train(
        self,
        *,
        model: str | Mapping[str, Any] | ModelSettings | None = None,
        train: Mapping[str, Any] | TrainSettings | None = None,
        tune: TuneLike | None = None,
        seed: int | None = None,
        directory: str | Path | None = None,
        calibrate: bool = False,
        all_rows: bool = False,
        progress: bool | Progress = True,
    ) -> Model:
        """Train the final model, score it once on *report*, and export it.

        Args:
            model: Another model than the decision was made with: choose with a cheap one, train the real one.
            train: Other training settings than the decision was made with.
            tune: Tune the primary alone first, over this many trainings, for the model that is trained now; or what
                `sidequest.tune` gave back, or the file of it. A decision that was made with tuned settings has them already.
            seed: Another seed than the decision's.
            directory: Where the model goes. By default the run's own directory, `final` in a comparison's, or one inside for
                another model.
            calibrate: Fit the temperature of the model's probabilities on *select*.
            all_rows: Learn from *select*, too, now that nothing is left to choose.
            progress: Bars on the error stream, or a listener of your own.
        """
        from sidequest.api.calls import listening
        from sidequest.api.tuning import tuned
        from sidequest.runs.setup import plain_model, plain_train

        source = open_source(
            self.directory,
            suite=self.setup.suite,
            model=plain_model(model),
            train=plain_train(train),
            allow_code=isinstance(self.setup.model, CustomSettings),  # it has chosen with that code already
            tuned=lambda setup: tuned(setup, tune, progress=progress),
        )
        out = Path(directory) if directory is not None else self._out
        if directory is None and source.other_model:
            out = out / f"trained-{source.setup.model.kind}"  # also the same kind with other settings
        with listening(progress) as listener:
            train_source(source, out, seed=seed, calibrate=calibrate, all_rows=all_rows, progress=listener)
        return Model.load(out / "model")


class ComparisonResult:
    """A comparison that is done: methods over seeds, with intervals, costs and a verdict.

    Attributes:
        record: Everything that `comparison.json` holds.
        setup: The suite, the model and the training settings.
        directory: The directory with the page and every run.
    """

    def __init__(self, record: Comparison, setup: Setup, directory: Path) -> None:
        self.record = record
        self.setup = setup
        self.directory = directory

    @property
    def verdict(self) -> str:
        """The answer in words."""
        return self.record.verdict

    @property
    def best(self) -> Selection:
        """The choice of the method that helps most, on its best seed on *select*; of the primary alone, if none helps."""
        run, _ = best_run(self.directory)
        return Selection(Recipe.read(run / "recipe.json"), self.setup, run, out=self.directory / FINAL)

    def frame(self) -> pd.DataFrame:
        """A row per method: mean score with its interval, difference to the baseline, verdict and cost."""
        import pandas as pd

        return pd.DataFrame([_plain(row, self.record.baseline) for row in self.record.rows])

    def page(self, path: str | Path | None = None) -> Path:
        """Where the page is: one file that needs nothing else.

        Args:
            path: Where to put a copy of it.
        """
        from sidequest.report.page import PAGE, write_page

        own = self.directory / PAGE
        if not own.is_file():
            write_page(self.directory)
        if path is None:
            return own
        copy = Path(path).expanduser()
        if copy.is_dir():
            raise SettingsError(f"{copy}: is a directory; a page is a file such as report.html")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(own, copy)
        return copy

    def __repr__(self) -> str:
        lines = [self._title, *_aligned([HEADER, *(_cells(row) for row in self.record.rows)])]
        return "\n".join([*lines, *self._remarks])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in HEADER)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in self.record.rows
        )
        remarks = "".join(f"<p>{escape(line)}</p>" for line in self._remarks)
        return (
            f"<p>{escape(self._title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{remarks}"
        )

    @property
    def _title(self) -> str:
        count = len(self.record.seeds)
        return f"{self.record.primary}: {self.record.metric} on report, {count} seed{'s' * (count != 1)}"

    @property
    def _remarks(self) -> list[str]:
        missing = [f"failed: {cell.method}, seed {cell.seed}: {cell.error}" for cell in self.record.missing]
        return [*missing, *verdicts.warnings(self.record), f"Verdict: {self.verdict}.", f"The page: {self.page()}"]


FINAL = "final"  # in the directory of a comparison: the model of its best choice
HEADER = ("method", "verdict", "mean", "95 % interval", "difference", "x")


def _cells(row: Row) -> tuple[str, ...]:
    first = row.to_baseline
    return (
        row.method,
        row.verdict,
        fixed(row.mean),
        f"{fixed(row.low)} to {fixed(row.high)}",
        "" if first is None else signed(first.mean),
        f"{row.x:.1f}",
    )


def _plain(row: Row, baseline: str) -> dict[str, Any]:
    first = row.to_baseline
    low, high = (None, None) if first is None else first.interval
    return {
        "method": row.method,
        "mean": row.mean,
        "low": row.low,
        "high": row.high,
        "difference": None if first is None else first.mean,
        "difference_low": low,
        "difference_high": high,
        "verdict": row.verdict,
        "x": row.x,
        "p_corrected": row.p_corrected,
        "probability_best": row.probability_best,
        "seeds": len(row.scores),
    }


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
