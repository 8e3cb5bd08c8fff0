"""Who takes part: sidequest's `single` with each kind of model, and the plain alternatives.

A contender turns a task and a seed into an `Outcome`. Its settings, with the content of the rows, are the key of its cells:
change them, and its cells are computed again.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sidequest.tasks.examples import Examples
from sidequest.tasks.metrics import compute_all
from sidequest.tasks.task import Form, Objective, Task
from strength_parts import plain
from strength_parts.finetuned import FineTuning, setfit
from strength_parts.primaries import FEW, SETFIT, labelled_rows
from strength_parts.table import Kinds

WORDS = (Form.TEXT, Form.PAIR, Form.CHOICES, Form.TOKENS)


@dataclass(frozen=True)
class Outcome:
    """report: every metric of the task. select: sidequest's own score on *select*, which chooses among its kinds."""

    report: dict[str, float]
    select: float | None = None


@dataclass(frozen=True)
class Contender:
    """ours: a kind of sidequest's models, whose cells also depend on the version of the training code.
    predict: an alternative's (task, the rows to learn from, seed) → predictions for *report*."""

    name: str
    about: str
    fits: Callable[[Task], bool]
    run: Callable[[Task, int], Outcome]
    settings: dict[str, Any] = field(default_factory=dict)
    ours: bool = False
    warm: Callable[[Task], None] | None = None
    missing: str | None = None
    predict: Callable[[Task, Examples, int], Any] | None = None

    def facts(self, task: Task) -> dict[str, Any]:
        """What decides a cell besides rows and seed."""
        return own_facts(task, self.settings) if self.ours else self.settings


def _alternative(
    name: str,
    about: str,
    fits: Callable[[Task], bool],
    predict: Callable[[Task, Examples, int], Any],
    settings: dict[str, Any],
    *,
    frozen: bool = False,
    missing: str | None = None,
    train_only: bool = False,
) -> Contender:
    """train_only: learn from *train*, as sidequest's `single` does by default, and not from *select*, too."""

    def run(task: Task, seed: int) -> Outcome:
        target: Any = task.splits["report"].target
        rows = task.train if train_only else labelled_rows(task)
        return Outcome(compute_all(task.metrics, predict(task, rows, seed), target, task.labels))

    warm = plain.warm if frozen else None
    return Contender(name, about, fits, run, settings, warm=warm, missing=missing, predict=predict)


# ---- sidequest's own --------------------------------------------------------------------------------------------------------


def own_setup(task: Task, settings: dict[str, Any]) -> Any:
    """The primary alone, with the library's defaults for everything but the kind of model."""
    from sidequest.runs.setup import Setup
    from sidequest.tasks.suite import Suite

    return Setup.of(Suite.of(task), model={"kind": settings["kind"]})


def own_facts(task: Task, settings: dict[str, Any]) -> dict[str, Any]:
    from sidequest.search.code_version import training_code_version

    setup = own_setup(task, settings)
    return {
        **settings,
        "model": setup.model.model_dump(mode="json"),
        "train": setup.train.model_dump(mode="json"),
        "code": training_code_version(),
    }


def _own(kind: str, forms: tuple[Form, ...], about: str, tune: int = 0, all_rows: bool = False) -> Contender:
    """tune: how many trainings the tuning of the primary may take; it sees *train* and *select* only.
    all_rows: learn from *select*, too, as every alternative does; such a cell has no score on *select*."""
    settings: dict[str, Any] = (
        {"kind": kind} | ({"tune": tune} if tune else {}) | ({"all_rows": True} if all_rows else {})
    )

    def warm(task: Task) -> None:
        setup = own_setup(task, settings)
        for rows in task.splits.values():
            setup.family.inputs(task, rows)

    def run(task: Task, seed: int) -> Outcome:
        from sidequest.runs.selecting import select
        from sidequest.runs.training import train_recipe

        setup = own_setup(task, settings)
        if tune:
            from sidequest.runs.tuning import tune as tuned

            setup = tuned(setup, tune, seed=seed).apply(setup)
        recipe = select(setup, "single", seed=seed)
        trained = train_recipe(setup, recipe, seed, all_rows=all_rows)
        return Outcome(trained.report, trained.select.get(task.metric))

    name = "final-" * all_rows + "tuned-" * (tune > 0) + kind
    return Contender(name, about, lambda task: task.form in forms, run, settings, ours=True, warm=warm)


# In the order of the advice of docs/models.md: what judges sidequest is the first kind that fits, whatever *select* says.
SENTENCES = (Form.TEXT, Form.PAIR, Form.CHOICES)
OWN = (
    _own("pooled", SENTENCES, "`single` over frozen sentence vectors"),
    _own("bilstm", WORDS, "`single` over frozen token states"),
    _own("hf", WORDS, "`single`, fine-tuning"),
    _own("convnet", (Form.IMAGE,), "`single` with a convolutional network"),
)
# Fine-tuning is not tuned here: a dozen trainings of each primary and seed would take most of a day.
TRAININGS = 12
TUNED = (
    _own("pooled", SENTENCES, f"`single` over frozen sentence vectors, tuned by {TRAININGS} trainings", TRAININGS),
    _own("bilstm", (Form.TOKENS,), f"`single` over frozen token states, tuned by {TRAININGS} trainings", TRAININGS),
    _own("convnet", (Form.IMAGE,), f"`single` with a convolutional network, tuned by {TRAININGS} trainings", TRAININGS),
)

# These have no scores on *select*, having learned from it.
ALL = "`single`, learning from *train* and *select* (`sidequest train --all-rows`)"
FINAL = (
    _own("pooled", SENTENCES, f"{ALL}, over frozen sentence vectors", all_rows=True),
    _own("bilstm", (Form.TOKENS,), f"{ALL}, over frozen token states", all_rows=True),
    _own("hf", WORDS, f"{ALL}, fine-tuning", all_rows=True),
    _own("convnet", (Form.IMAGE,), f"{ALL}, with a convolutional network", all_rows=True),
)
# With the settings that `tuned-…` found, which are kept: the seconds are those of what comes after.
FINAL_TUNED = (
    _own("pooled", SENTENCES, "`tuned-pooled`, learning from *train* and *select*", TRAININGS, all_rows=True),
    _own("bilstm", (Form.TOKENS,), "`tuned-bilstm`, learning from *train* and *select*", TRAININGS, all_rows=True),
    _own("convnet", (Form.IMAGE,), "`tuned-convnet`, learning from *train* and *select*", TRAININGS, all_rows=True),
)


# ---- alternatives -----------------------------------------------------------------------------------------------------------

USUAL = {"epochs": 3, "learning_rate": 5e-5}
FEW_SAMPLE = {"epochs": 20, "learning_rate": 1e-4}
ITERATIONS = 5
NO_SETFIT = None if importlib.util.find_spec("setfit") else "pip install setfit"

ALTERNATIVES = (
    _alternative(
        "cosine",
        "the cosine of frozen sentence vectors, untrained (two classes: one threshold)",
        plain.has_cosine,
        plain.cosine,
        {"version": 1},
        frozen=True,
    ),
    _alternative(
        "probe",
        "RidgeCV or LogisticRegressionCV on the same frozen states; logistic regression on word states of four layers; on pixels",
        lambda task: True,
        plain.probe,
        {"version": 1},
        frozen=True,
    ),
    _alternative(
        "svm",
        "an RBF SVM on pixels, C and width by cross-validation",
        lambda task: task.form == Form.IMAGE,
        plain.pixel_svm,
        {"version": 1},
    ),
    _alternative(
        "finetune",
        "a plain transformers loop, 3 epochs at 5e-5, batches of 16, warm-up 0.1",
        lambda task: task.form in WORDS,
        FineTuning(**USUAL),  # type: ignore[arg-type]
        {"version": 1, **USUAL},
    ),
    _alternative(
        FEW,
        "the same loop, 20 epochs at 1e-4",
        lambda task: task.form in WORDS,
        FineTuning(**FEW_SAMPLE),  # type: ignore[arg-type]
        {"version": 1, **FEW_SAMPLE},
    ),
    _alternative(
        SETFIT,
        f"SetFit with {ITERATIONS} pairs of each sign per row",
        lambda task: task.form == Form.TEXT and task.objective == Objective.CLASSIFICATION,
        lambda task, rows, seed: setfit(task, rows, seed, iterations=ITERATIONS),
        {"version": 1, "iterations": ITERATIONS},
        missing=NO_SETFIT,
    ),
)


# What stands beside `single` as it is by default: the same rows to learn from. Three epochs at 5e-5 are left out for their cost:
# from all labelled rows they hardly leave the most frequent class.
TRAIN_ONLY = tuple(
    _alternative(
        f"train-{each.name}",
        f"`{each.name}` from *train* alone",
        each.fits,
        each.predict,
        each.settings,
        frozen=each.warm is not None,
        missing=each.missing,
        train_only=True,
    )
    for each in ALTERNATIVES
    if each.name != "finetune" and each.predict is not None
)

CONTENDERS = (*OWN, *TUNED, *FINAL, *FINAL_TUNED, *ALTERNATIVES, *TRAIN_ONLY)
KINDS = Kinds(*([each.name for each in group] for group in (OWN, TUNED, FINAL, FINAL_TUNED, ALTERNATIVES, TRAIN_ONLY)))
