"""The primaries: which rows a contender learns from and which it is judged on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sidequest.tasks.digits import digits_suite
from sidequest.tasks.examples import Examples, concatenate
from sidequest.tasks.loading import load_task
from sidequest.tasks.planted import planted_suite
from sidequest.tasks.task import Objective, Task

BESIDE = Path(__file__).parents[3] / "shared" / "data"  # beside a checkout of the repository


@dataclass(frozen=True)
class Primary:
    """One row of the table.

    labelled: rows with labels that every contender gets; *select* is carved out of them by the library's own rule.
    report: at most this many rows of the official development (or test) file.
    folder: of its files, relative to the data directory; empty for an embedded primary, which `make` builds.
    left_out: contenders that would take too long here; see `PRIMARIES`.
    """

    name: str
    labelled: int
    report: int = 500
    folder: str = ""
    spec: tuple[tuple[str, Any], ...] = ()
    left_out: tuple[str, ...] = ()
    make: Callable[[int], Task] | None = None

    def load(self, seed: int, data: Path) -> Task:
        """The task whose labelled rows the seed draws. *report* is the same for every seed (embedded primaries: drawn, too)."""
        if self.make is not None:
            return self.make(seed)
        spec = {"limit": self.labelled, "report_limit": self.report} | dict(self.spec)
        if "catalog" in spec:
            spec["path"] = str(data / self.folder)
        task = load_task(self.name, spec, data, seed, primary=True)
        fixed = load_task(self.name, spec, data, 0, primary=True) if seed else task
        return replace(task, splits={**task.splits, "report": fixed.splits["report"]})


def _of(name: str, labelled: int, folder: str, catalog: str, **options: Any) -> Primary:
    more = {key: options.pop(key) for key in ("metric",) if key in options}
    return Primary(name, labelled, folder=folder, spec=tuple({"catalog": catalog, **more}.items()), **options)


def _idx(part: str) -> dict[str, str]:
    return {"image": f"mnist/{part}-images-idx3-ubyte.gz", "label": f"mnist/{part}-labels-idx1-ubyte.gz"}


def _digits(labelled: int, report: int) -> Callable[[int], Task]:
    select = labelled // 4
    others = dict.fromkeys(("parity", "large", "bottom-right", "ink", "shuffled"), 0)

    def make(seed: int) -> Task:
        rows = {"top-left": labelled - select, **others}
        suite = digits_suite(seed, rows=rows, select_rows=select, report_rows=report)
        return suite.tasks[suite.primary]

    return make


def _planted(labelled: int, report: int) -> Callable[[int], Task]:
    select = labelled // 4

    def make(seed: int) -> Task:
        suite = planted_suite(seed, primary_rows=labelled - select, rows=4, select_rows=select, report_rows=report)
        return suite.tasks[suite.primary]

    return make


# Sizes were fixed before anything was trained, for cost: fine-tuning takes about a minute of one core per 80,000 tokens. Twenty
# epochs (`finetune-few`) are left out where three seeds would take more than twelve minutes, which is where rows or texts are
# many. SetFit is for single texts, and left out where its pairs would be too many.
FEW, SETFIT = "finetune-few", "setfit"
PRIMARIES: tuple[Primary, ...] = (
    _of("sst2", 160, "glue/SST-2", "sst2"),
    _of("sst2-1000", 1000, "glue/SST-2", "sst2", left_out=(FEW, SETFIT)),
    _of("cola", 200, "glue/CoLA", "cola"),
    _of("meld", 200, "meld", "meld", metric=["macro_f1", "weighted_f1", "accuracy"]),
    _of("mrpc", 400, "glue/MRPC", "mrpc", left_out=(FEW,)),
    _of("rte", 300, "glue/RTE", "rte", left_out=(FEW,)),
    _of("qnli", 120, "glue/QNLI", "qnli"),
    _of("qqp", 600, "glue/QQP", "qqp", left_out=(FEW,)),
    _of("mnli", 120, "glue/MNLI", "mnli"),
    _of("cb", 250, "superglue/CB", "cb", left_out=(FEW,)),
    _of("stsb", 400, "glue/STS-B", "stsb"),
    _of("chunking", 268, "conll2000", "conll2000"),
    _of("ner", 160, "conll2003", "conll2003"),
    _of("pos", 100, "ud-english-ewt", "ud"),
    _of("copa", 140, "superglue/COPA", "copa"),
    Primary("digits", 133, 1000, make=_digits(133, 1000)),
    Primary(
        "mnist",
        2500,
        1000,
        folder="mnist",
        spec=(("objective", "classification"), ("train", _idx("train")), ("report", _idx("t10k"))),
    ),
)

# Without any files and in a minute: what `--small` runs.
SMALL: tuple[Primary, ...] = (
    Primary("small-digits", 60, 200, make=_digits(60, 200), left_out=("tuned-convnet",)),
    Primary(
        "small-planted",
        48,
        80,
        make=_planted(48, 80),
        left_out=("hf", "tuned-pooled", "tuned-bilstm", "finetune", FEW, SETFIT),
    ),
)


def data_directory(named: str | None) -> Path:
    """`--data`, or `SIDEQUEST_DATA`, or `shared/data` beside the checkout."""
    return Path(named or os.environ.get("SIDEQUEST_DATA") or BESIDE)


def available(primary: Primary, data: Path) -> bool:
    return primary.make is not None or (data / primary.folder).is_dir()


def labelled_rows(task: Task) -> Examples:
    """*train* and *select* together: what an alternative learns from, because sidequest has seen the labels of both."""
    return concatenate([task.splits["train"], task.splits["select"]])


def content(task: Task) -> dict[str, str]:
    """A digest per split of what its rows say, and of nothing else: neither ids nor the code that read them have a part in it, so
    that what does not depend on sidequest is not computed again when sidequest changes."""
    return {split: _digest(rows, task) for split, rows in task.splits.items()}


def _digest(rows: Examples, task: Task) -> str:
    hashed = hashlib.sha256(json.dumps([task.objective, list(task.labels), list(task.metrics)]).encode())
    for name in sorted(rows.columns):
        column = rows.columns[name]
        hashed.update(name.encode())
        if isinstance(column, np.ndarray):
            hashed.update(f"{column.dtype}{column.shape}".encode() + np.ascontiguousarray(column).tobytes())
        else:
            hashed.update(json.dumps(column.to_pylist(), ensure_ascii=False).encode())
    target: Any = rows.target
    hashed.update(json.dumps(target.to_pylist() if task.objective == Objective.TAGGING else target.tolist()).encode())
    return hashed.hexdigest()[:16]
