"""Predict the rows of a user's file with exported models."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sidequest.errors import SettingsError
from sidequest.files import read_json
from sidequest.models import load
from sidequest.runs.training import READING
from sidequest.tasks.loading import read_rows


def predict_file(models: Sequence[Path], file: Path, *, factory: str | None = None) -> list[dict[str, Any]]:
    """One plain dict per row, in the file's order. Several models average their probabilities or values.

    factory: for custom models, the user's function that builds them; code is run only if it is named here.
    """
    from sidequest.models.predictor import Predictor

    for directory in models:
        if not directory.is_dir():
            raise SettingsError(f"{directory}: not a model directory; `sidequest train` writes one")
    predictor = Predictor.ensemble([load(directory, factory=factory) for directory in models])
    reading = models[0] / READING
    # A model exported from Python has no file to imitate: the columns then have their canonical names.
    inputs = read_json(reading) if reading.exists() else {}
    return predictor.predict(read_rows(file, inputs or _canonical(predictor.task.form))).to_rows()


def _canonical(form: str) -> dict[str, dict[str, Any]]:
    names = {"text": ["text"], "pair": ["text", "text_b"], "choices": ["text", "choices"], "tokens": ["tokens"]}
    return {"columns": {name: name for name in names.get(form, ["image"])}}


def as_jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_csv(rows: list[dict[str, Any]]) -> str:
    """A column per class for probabilities; tags of a row separated by spaces."""
    flat = [_flat(row) for row in rows]
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(flat[0]) if flat else ["label"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue().rstrip("\n")


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in row.items():
        if key == "probabilities":
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            out |= {f"probability_{name}": f"{share:.6g}" for name, share in pairs}
        else:
            out[key] = " ".join(value) if isinstance(value, list) else value
    return out
