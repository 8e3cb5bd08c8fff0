"""Predict the rows of a user's file with exported models, and write what they say."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidequest.errors import SettingsError, nearest
from sidequest.models import load
from sidequest.models.token_limit import token_limit
from sidequest.paths import check_output_file, what_is_at
from sidequest.runs.encoder_files import check_config
from sidequest.tasks.encoding import indicator_columns
from sidequest.tasks.examples import Examples
from sidequest.tasks.metrics import check_metric
from sidequest.tasks.rows import NewRows, column_names, read_new_rows
from sidequest.tasks.spec import TaskSpec
from sidequest.tasks.task import Form, Objective

if TYPE_CHECKING:
    from sidequest.models.predictions import Predictions
    from sidequest.models.predictor import Member, Predictor

ENCODER = "encoder"  # of an exported model, the folder of the one that it reads
FORMATS = (".csv", ".jsonl", ".parquet")
SEPARATOR = ";"  # between the labels of a row, where the training files had lists


@dataclass(frozen=True)
class PredictedFile:
    """Predictions of a file's rows, in its order.

    scores: every metric of the task over the rows that have labels. cut: how many rows the model did not read whole.
    """

    predictions: Predictions
    rows: NewRows
    scores: dict[str, float] | None
    cut: int = 0

    @property
    def separator(self) -> str:
        """What stands between the labels of a row in csv: the same as in the training files, if they had one."""
        return str(self.predictions.task.inputs.get("target", {}).get("label_separator", SEPARATOR))

    def columns(
        self, *, probabilities: bool = False, inputs: bool = True, keep: Sequence[str] = ()
    ) -> dict[str, list[Any]]:
        """What is written, column by column: `id` (the row's number in the file, from 0), the columns of the file that were asked
        for, the inputs, and the predictions. A prediction whose name is taken gets `predicted_` before it.

        keep: more columns of the file; one that is called `id` takes the place of the row's number.
        """
        table = self.rows.table
        for name in keep:
            if name not in table.columns:
                raise SettingsError(f"--keep {name}: {table.source} has no such column. {nearest(name, table.columns)}")
        out: dict[str, list[Any]] = {"id": self.rows.examples.ids.tolist()}
        out |= {name: _plain(table.columns[name]) for name in keep}
        if inputs and self.predictions.task.form is not Form.IMAGE:
            own = column_names(self.predictions.task)
            for canonical, column in self.rows.examples.columns.items():
                name = own[canonical]  # a template, or several columns, are called by the input that they make
                known = isinstance(name, str) and name in table.columns
                out.setdefault(name if known else canonical, _plain(column))
        said = self._said(probabilities)
        return out | {(f"predicted_{name}" if name in out else name): values for name, values in said.items()}

    def _said(self, probabilities: bool) -> dict[str, list[Any]]:
        """Predictions, several labels in the way that the training files had them: as a list, or as 0/1 columns."""
        said = self.predictions.columns(probabilities=probabilities)
        task = self.predictions.task
        facts = task.inputs.get("target", {})
        if task.objective is not Objective.MULTILABEL or not facts or "label" in facts:
            return said
        assert self.predictions.marks is not None
        names = {label: column for column, label in indicator_columns(TaskSpec(**facts)).items()}
        marks = {names[label]: self.predictions.marks[:, i].astype(int).tolist() for i, label in enumerate(task.labels)}
        return marks | {key: values for key, values in said.items() if key != "labels"}


def predict_file(models: Sequence[Path], file: Path, *, factory: str | None = None) -> PredictedFile:
    """Predict a file's rows, and score those that have labels. Several models average their probabilities or values.

    factory: for custom models, the user's function that builds them; code is run only if it is named here.
    """
    from sidequest.models.predictor import Predictor

    for directory in models:
        if what_is_at(directory) != "directory":
            raise SettingsError(f"{directory}: not a model directory; `sidequest train` writes one")
        for place in (directory, directory / ENCODER):
            check_config(place)
    predictor = Predictor.ensemble([load(model_in(directory), factory=factory) for directory in models])
    rows = read_new_rows(file, predictor.task)
    try:
        return predict_rows(predictor, rows)
    except SettingsError as error:
        raise SettingsError(f"{file}: {error}") from None


def model_in(directory: Path) -> Path:
    """The model of a run directory, or the directory itself."""
    from sidequest.models.saved import ModelCard  # brings torch

    inside = directory / "model"
    return inside if not (directory / ModelCard.FILE).is_file() and (inside / ModelCard.FILE).is_file() else directory


def predict_rows(predictor: Predictor, rows: NewRows) -> PredictedFile:
    """Predict rows, and score those that have labels."""
    if rows.target is not None:
        for metric in predictor.task.metrics:
            check_metric(metric, predictor.task.objective, predictor.task.labels)
    predictions = predictor.predict(rows.examples)
    scores = None if rows.target is None else predictions.scores(rows.target, rows.labelled)
    return PredictedFile(
        predictions, rows, scores, max(_cut_rows(member, rows.examples) for member in predictor.members)
    )


def _cut_rows(member: Member, rows: Examples) -> int:
    limit = token_limit(member.family.settings)
    return 0 if limit is None else limit.long_rows(member.task, rows).number


def check_format(path: Path | None) -> str:
    """The suffix that says in which format predictions are written; csv for standard output."""
    suffix = ".csv" if path is None else path.suffix.lower()
    if suffix not in FORMATS:
        raise SettingsError(f"{path}: predictions are written as {', '.join(FORMATS)}, found {suffix!r}")
    if path is not None:
        check_output_file(path)
    return suffix


def as_bytes(columns: Mapping[str, list[Any]], suffix: str, separator: str = SEPARATOR) -> bytes:
    """Columns as a file. separator: between the labels of a row in csv, which has no lists."""
    if suffix == ".parquet":
        return as_parquet(columns)
    return (as_jsonl(columns) if suffix == ".jsonl" else as_csv(columns, separator)).encode()


def as_jsonl(columns: Mapping[str, list[Any]]) -> str:
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)


def as_csv(columns: Mapping[str, list[Any]], separator: str = SEPARATOR) -> str:
    """A column per class for probabilities. Words, their tags and their probabilities are separated by spaces, labels and choices
    by the separator."""
    flat: dict[str, list[Any]] = {}
    for name, values in columns.items():
        if name.removeprefix("predicted_") == "probabilities":
            flat |= _probability_columns(values)
        elif any(isinstance(value, list) for value in values):
            between = " " if name in ("tokens", "tags", "predicted_tags") else separator
            flat[name] = [between.join(map(str, value)) for value in values]
        else:
            flat[name] = values
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(flat)
    writer.writerows(zip(*flat.values(), strict=True))
    return out.getvalue()


def as_parquet(columns: Mapping[str, list[Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), out)
    return out.getvalue()


def flat_columns(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """A column `probability_LABEL` for each class of rows that have one answer; lists stay lists."""
    out: dict[str, list[Any]] = {}
    for name, values in columns.items():
        if name == "probabilities" and values and isinstance(values[0], dict):
            out |= {f"probability_{label}": [row[label] for row in values] for label in values[0]}
        else:
            out[name] = values
    return out


def _probability_columns(rows: list[Any]) -> dict[str, list[str]]:
    """`probability_LABEL`: of a row, or of each of its words."""
    if not rows:
        return {}
    if isinstance(rows[0], dict):
        return {f"probability_{label}": [f"{row[label]:.6g}" for row in rows] for label in rows[0]}
    if rows[0] and isinstance(rows[0][0], dict):
        return {
            f"probability_{tag}": [" ".join(f"{word[tag]:.6g}" for word in row) for row in rows] for tag in rows[0][0]
        }
    return {f"probability_{choice}": [f"{row[choice]:.6g}" for row in rows] for choice in range(len(rows[0]))}


def _plain(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
