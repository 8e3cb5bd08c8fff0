"""A trained model that predicts: a DataFrame in, a DataFrame out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidequest.errors import SettingsError
from sidequest.files import atomic_directory
from sidequest.records.runs import ScoresRecord
from sidequest.runs.predicting import PredictedFile, flat_columns, predict_rows
from sidequest.tasks.memory import as_table
from sidequest.tasks.rows import new_rows, read_table

if TYPE_CHECKING:
    import pandas as pd

    from sidequest.models.predictor import Predictor


class Model:
    """A model that `train` exported, or that `load` found.

    Attributes:
        directory: Where its files are.
        task: The name of the task that it predicts.
        labels: The task's labels, in the order of its probabilities.
        select: Its scores on *select* when it was trained, if they are known.
        report: Its scores on *report* when it was trained, if they are known.
    """

    def __init__(self, predictor: Predictor, directory: Path, scores: ScoresRecord | None = None) -> None:
        self._predictor = predictor
        self.directory = directory
        self.task = predictor.task.name
        self.labels = predictor.task.labels
        self.select = None if scores is None else dict(scores.select)
        self.report = None if scores is None else dict(scores.report)

    @classmethod
    def load(cls, directory: str | Path, *, factory: str | None = None) -> Model:
        """A model from its directory.

        Args:
            directory: What `train` or `save` wrote.
            factory: For a `custom` model, the function that builds it, as `file.py:function`.
        """
        from sidequest.models.predictor import Predictor

        place = Path(directory).expanduser()
        if not place.is_dir():
            raise SettingsError(f"{place}: not a model directory; `train` and `sidequest train` write one")
        return cls(
            Predictor.load(place, factory=factory), place, ScoresRecord.read_if_there(place.parent / ScoresRecord.FILE)
        )

    def __repr__(self) -> str:
        scores = "" if not self.report else ", report " + ", ".join(f"{k} {v:.4f}" for k, v in self.report.items())
        return f"Model of {self.task!r} in {str(self.directory)!r}{scores}"

    def predict(self, data: Any, *, probabilities: bool = True) -> pd.DataFrame:
        """What the model says of each row: `label`, `labels`, `choice`, `value` or `tags`, and `probability_LABEL` columns.

        Args:
            data: A DataFrame, a mapping of columns, an Arrow table, a dataset or the path of a file, with the columns that the
                model was trained on; others are not looked at. The index of a DataFrame is kept.
            probabilities: Whether to add the columns of probabilities.
        """
        import pandas as pd

        said = self._predict(data).predictions.columns(probabilities=probabilities)
        index = data.index if isinstance(data, pd.DataFrame) else None
        return pd.DataFrame(flat_columns(said), index=index)

    def score(self, data: Any) -> dict[str, float]:
        """Every metric of the task over the rows that have labels.

        Args:
            data: As for `predict`, with the column of labels.
        """
        predicted = self._predict(data)
        if predicted.scores is None:
            raise SettingsError(f"these rows cannot be scored: {predicted.rows.unscored or 'they have no labels'}")
        return predicted.scores

    def _predict(self, data: Any) -> PredictedFile:
        task = self._predictor.task
        is_path = isinstance(data, str | Path)
        table = read_table(Path(data).expanduser(), task.inputs) if is_path else as_table(data, "the rows to predict")
        return predict_rows(self._predictor, new_rows(table, task))

    def save(self, directory: str | Path) -> Path:
        """Copy the model's files to a directory of their own, from which `load` and `sidequest predict` read it.

        Args:
            directory: A new directory, an empty one, or one with another model, which is replaced.
        """
        place = Path(directory).expanduser()
        if place.exists() and (not place.is_dir() or any(place.iterdir())) and not (place / "sidequest.json").is_file():
            raise SettingsError(f"{place}: holds something else than a model; give another directory")
        with atomic_directory(place) as new:
            shutil.copytree(self.directory, new, dirs_exist_ok=True)
        return place


def load(directory: str | Path, *, factory: str | None = None) -> Model:
    """A trained model from its directory.

    Args:
        directory: What `train` or `save` wrote.
        factory: For a `custom` model, the function that builds it, as `file.py:function`.
    """
    return Model.load(directory, factory=factory)
