"""`python -m experiments nlu`: αVIL's experiment on five small language tasks (Kourdis et al. 2020, Table 2).

CB, COPA, MRPC, RTE and WNLI share an encoder; each has a head of two layers. An epoch takes a quarter of every train split. The
paper tunes on the official development sets and sends its test predictions to the GLUE server. Here *select* is carved from
train, afresh for each seed, and the development sets are *report*: what is tuned on is never what is reported.

The encoder is fine-tuned, as in the paper, whose is RoBERTa-base (`--encoder roberta-base`); the default here is the small one
that needs no network.

`--small` has another model, `pooled` over the frozen encoder: a small encoder that is fine-tuned on a few hundred rows stays at
the majority class on most of these tasks, where nothing can be compared, and `pooled` starts at a read-out that has left it.
The read-out and the primary alone for as many batches stand beside it, and a task is judged only where single training has
learned it (`gate`).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from experiments import Options
from experiments.claims import has_learned
from experiments.data import data_directory
from experiments.jobs import ExperimentJob
from experiments.targets import (
    CLAIMS,
    METHODS,
    TargetsPlan,
    claims,
    claims_table,
    ensemble_score,
    outcomes_of,
    run_job,
    scores,
    spread,
)
from sidequest.files import write_json
from sidequest.model_settings import HfSettings, PooledSettings
from sidequest.models.base import Batch, Family, seeded
from sidequest.models.hf import HfFamily
from sidequest.models.hf_model import HfModel
from sidequest.models.pooled import PooledFamily
from sidequest.report.tables import markdown_table
from sidequest.settings import TrainSettings
from sidequest.tasks.loading import load_task
from sidequest.tasks.suite import Suite

__all__ = ["jobs_of", "run_job", "shared_of", "show"]

PLACES = {
    "cb": "superglue/CB",
    "copa": "superglue/COPA",
    "mrpc": "glue/MRPC",
    "rte": "glue/RTE",
    "wnli": "glue/WNLI",
}
TARGETS = tuple(PLACES)
FRACTION, EPOCHS, SEEDS = 0.25, 20, 4
# The paper's: AdamW 5e-6, ε 1e-6, decay 0.01, batch 8; α by SGD 0.001 with momentum 0.5. (Its ε is torch's 1e-8 here.)
TRAIN = TrainSettings(
    batch_size=8, learning_rate=5e-6, weight_decay=0.01, warmup=0.0, decay="constant", clip=None, patience=None
)
SETTINGS: dict[str, dict[str, Any]] = {"alphavil": {"alpha_rate": 0.001}}
LENGTH = 256
# At a rate of α of 0.05 the weights stay within 0.99 and 1.01 over so few epochs, at 0.5 they go to 0.69 and 1.12.
SMALL_TRAIN = TRAIN.model_copy(update={"batch_size": 32, "learning_rate": 1e-3})
SMALL_SETTINGS: dict[str, dict[str, Any]] = {"alphavil": {"alpha_rate": 0.5}, "diw": {"patience": 2}}
SMALL_ROWS = {"mrpc": 1200, "rte": 1200}  # the others have fewer
SMALL_SEEDS = 4
SMALL_METHODS = ("probe", "single", "single-long", "multitask", "alphavil", "diw")
SMALL_CLAIMS = (("alphavil", "multitask"), ("alphavil", "single-long"))

# The paper's Table 2, in per cent, by TARGETS: mean development accuracy over 4 seeds, and test accuracy of their ensemble.
PAPER = {
    "single": ((90.18, 56.00, 90.01, 80.23, 55.99), (84.0, 47.6, 87.8, 73.1, 65.1)),
    "multitask": ((95.98, 68.00, 89.83, 80.05, 56.69), (94.0, 60.0, 87.8, 75.3, 65.1)),
    "diw": ((98.66, 64.25, 90.69, 81.14, 59.15), (93.6, 56.4, 88.2, 75.1, 62.3)),
    "alphavil": ((97.77, 67.33, 89.22, 81.05, 57.75), (92.8, 59.0, 88.2, 75.8, 65.1)),
}


def jobs_of(options: Options) -> list[ExperimentJob]:
    return plan_of(options, None).jobs()


def shared_of(options: Options) -> TargetsPlan:
    return plan_of(options, data_directory(options))


def plan_of(options: Options, data: Path | None) -> TargetsPlan:
    return TargetsPlan(
        "nlu",
        suite,
        functools.partial(pooled_family if options.small else tuned_family, encoder=options.encoder),
        data,
        TARGETS,
        SMALL_TRAIN if options.small else TRAIN,
        EPOCHS,
        options.seed_range(SMALL_SEEDS if options.small else SEEDS),
        options.out,
        FRACTION,
        settings=SMALL_SETTINGS if options.small else SETTINGS,
        rows=SMALL_ROWS if options.small else {},
        model=("pooled " if options.small else "fine-tuned ") + f"{options.encoder or 'minilm'}, {LENGTH} tokens",
        methods=SMALL_METHODS if options.small else METHODS,
        probabilities=True,
    )


def show(options: Options, by_job: Mapping[str, Any]) -> dict[str, Any]:
    plan, outcomes = plan_of(options, data_directory(options)), outcomes_of(by_job)
    rows, gates = table_rows(plan, outcomes), gate(plan, outcomes) if options.small else {}
    judged = [target for target in TARGETS if gates.get(target, True)]
    claimed = claims(outcomes, judged, SMALL_CLAIMS if options.small else CLAIMS)
    print(f"\nFive language tasks, {plan.epochs} epochs of a quarter: accuracy in per cent")
    print(table(rows))
    if unlearned := [target for target in gates if not gates[target]]:
        print(f"\nNot judged, because single training has not learned them: {', '.join(unlearned)}")
    if claimed:
        print("\nDifferences on report")
        print(claims_table(claimed))
    results = {"epochs": plan.epochs, "table": rows, "learned": gates, "claims": claimed}
    write_json(options.out / "results.json", results, seal=False)
    return results


def suite(plan: TargetsPlan, seed: int) -> Suite:
    assert plan.data is not None
    tasks = []
    for name in TARGETS:
        limit = {"limit": plan.rows[name]} if name in plan.rows else {}
        tasks.append(load_task(name, {"catalog": name, "path": str(plan.data / PLACES[name]), **limit}, seed=seed))
    return Suite.of(tasks[0], tasks[1:], name="nlu")


class TwoLayerHead(nn.Module):
    """Of the first token's state: width → width/3 (768 → 256 in the paper), ReLU, → classes."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.layers = two_layers(width, width // 3, outputs)

    def forward(self, states: Tensor, batch: Batch) -> Tensor:
        """states [n, longest, width] → logits [n, outputs]."""
        return self.layers(states[:, 0])


class TunedFamily(HfFamily):
    """The whole encoder is trained, with a head of two layers per task."""

    def build(self, seed: int) -> HfModel:
        base = copy.deepcopy(self.pretrained.model)
        base.pooler = None  # the heads read the first token themselves
        model = HfModel(base, self.settings.precision)
        for task in self.suite.tasks.values():
            with seeded(seed, "head", task.name):
                model.add_head(task, TwoLayerHead(base.config.hidden_size, task.outputs))
        return model


def two_layers(width: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


def tuned_family(suite: Suite, encoder: str | None = None) -> Family:
    # Both texts of a pair in one sequence: a head reads one state per row.
    settings = HfSettings(pairing="cross", max_length=LENGTH)
    return TunedFamily(suite, settings if encoder is None else settings.model_copy(update={"encoder": encoder}))


def pooled_family(suite: Suite, encoder: str | None = None) -> Family:
    return PooledFamily(suite, PooledSettings(encoder=encoder or "minilm", max_length=LENGTH))


def gate(plan: TargetsPlan, outcomes: Sequence[dict[str, Any]]) -> dict[str, bool]:
    """By target: has single training learned it? The constant answer is the most frequent one of *report*, also of choices."""
    suite, learned = plan.suite(plan, 0), {}
    for target in TARGETS:
        single, probe = (scores(outcomes, name, target, "report") for name in ("single", "probe"))
        if single:
            labels = np.asarray(suite[target].splits["report"].target)
            learned[target] = has_learned(single, float(np.bincount(labels).max() / len(labels)), probe)
    return learned


def table_rows(plan: TargetsPlan, outcomes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Table 2: per target and method the spread on both splits, the ensemble on *report*, and the paper's numbers."""
    rows = []
    for index, target in enumerate(TARGETS):
        for method in plan.methods:
            mine = [each for each in outcomes if each["method"] == method and each["target"] == target]
            if not mine:
                continue
            development, test = (numbers[index] for numbers in PAPER[method]) if method in PAPER else (None, None)
            rows.append(
                {
                    "target": target,
                    "method": method,
                    "select": spread(list(scores(outcomes, method, target, "select").values())),
                    "report": spread(list(scores(outcomes, method, target, "report").values())),
                    "ensemble": None if plan.data is None else 100 * ensemble_score(plan, mine, target),
                    "paper_development": development,
                    "paper_test_ensemble": test,
                }
            )
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    cells = []
    for row in rows:
        both = [
            f"{row[split][name]:.1f}" for split in ("select", "report") for name in ("min", "max", "mean", "deviation")
        ]
        theirs = [
            "" if row[name] is None else f"{row[name]:.1f}"
            for name in ("ensemble", "paper_development", "paper_test_ensemble")
        ]
        cells.append([row["target"], row["method"], *both, *theirs])
    names = [f"{split} {name}" for split in ("select", "report") for name in ("min", "max", "mean", "dev.")]
    return markdown_table(["", "", *names, "ensemble", "paper: dev", "paper: test"], cells)
