"""The gate of AutoSeM on pairs of sentences: does it matter at all which tasks stand beside a fine-tuned MRPC or RTE?

The protocol asks for an oracle before anything is fine-tuned there. Every subset of MNLI, QQP and STS-B is trained with the
primary, one batch of each task in turn as in `sidequest oracle`, on every seed. Where an F test finds no difference between the
subsets, no way of choosing could show one: the gate stays closed, and that is the finding.

Controls stand beside the subsets and are not part of the test: the primary alone for as many batches as with all three, and the
plain read-out. Nothing stops early, so the lengths are what they are called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.autosem_suites import AutoSeMSuite, make_setup
from experiments.cells import by_seed, method_result, recipe_result, score_table
from experiments.jobs import ExperimentJob, Result
from sidequest.model_settings import HfSettings
from sidequest.recipe import Phase, Recipe
from sidequest.records.controls import PROBE, SINGLE_LONG
from sidequest.runs.oracle import some_subsets
from sidequest.runs.truth import LARGEST_P, MOST_UNTRAINED, named, signal

PRIMARIES = ("mrpc", "rte")
CANDIDATES = ("mnli", "qqp", "stsb")
GATE = "gate: "  # methods of these jobs: a repetition of the tables' `single`, another model, says nothing about theirs
SUBSETS = {GATE + (" ".join(chosen) or "single"): chosen for chosen in some_subsets(CANDIDATES)}
WITH_ALL = GATE + " ".join(CANDIDATES)
CONTROLS = {GATE + SINGLE_LONG: SINGLE_LONG, GATE + PROBE: PROBE}
TITLES = {
    **{label: named(chosen) or "single" for label, chosen in SUBSETS.items()},
    GATE + SINGLE_LONG: "single, as many batches as with all three",
    GATE + PROBE: "plain read-out",
}


def gate_suites(small: bool) -> dict[str, AutoSeMSuite]:
    """By primary. Full size trains as is usual for the model; a candidate gives as many batches as the primary, which never are
    more than 20,000 rows. The small size has other rows of the primary for each seed, and scores the last model: *select* has too
    few rows to choose one."""
    train: dict[str, Any] = {"patience": None}
    rows: dict[str, int] = {"auxiliary_limit": 20_000}
    model = HfSettings(max_length=128, precision="bf16")
    if small:
        train |= {"epochs": 3, "evaluations": 1, "keep": "last"}
        rows = {"train_rows": 200, "select_rows": 100, "auxiliary_limit": 300}
        model = model.model_copy(update={"max_length": 64})
    return {name: AutoSeMSuite(name, CANDIDATES, model, train, **rows) for name in PRIMARIES}


def gate_jobs(suite: AutoSeMSuite, seeds: Iterable[int]) -> list[ExperimentJob]:
    """All of a seed before the next seed."""
    return [_job(suite, label, seed) for seed in seeds for label in (*SUBSETS, *CONTROLS)]


def _job(suite: AutoSeMSuite, label: str, seed: int) -> ExperimentJob:
    facts = {**suite.facts(), "beside": SUBSETS.get(label)}
    longest = ExperimentJob(WITH_ALL, suite.primary, seed).name if label == GATE + SINGLE_LONG else None
    return ExperimentJob(label, suite.primary, seed, facts, needs=longest)


def run_gate_job(
    suite: AutoSeMSuite, data: Path, encoder: str | None, job: ExperimentJob, needed: Mapping[str, Result], place: Path
) -> Result:
    setup = make_setup(suite, data, job.seed, encoder)
    if job.method in CONTROLS:
        length = {"batches": needed[job.needs]["batches"]} if job.needs is not None else {}
        return method_result(setup, CONTROLS[job.method], length, job.seed, place)
    phase = Phase(shares=dict.fromkeys((suite.primary, *SUBSETS[job.method]), 1))
    return recipe_result(setup, Recipe(method="oracle", primary=suite.primary, phases=(phase,)), job.seed)


def show_gate(primary: str, by_job: Mapping[str, Result]) -> dict[str, Any]:
    """Print the subsets and whether the gate is open."""
    print(f"\n{primary}, fine-tuned: every subset of {named(CANDIDATES)} beside it, in per cent")
    print(score_table(primary, by_job, TITLES))
    seeds, scores = subset_scores(primary, by_job)
    if len(seeds) < 2:
        print(f"{primary}: the gate's F test takes two seeds with every subset; {len(seeds)} so far (--seeds)")
        return {"seeds": seeds, "open": None}
    found = signal(scores)
    is_open = bool(found.p_value <= LARGEST_P)
    state = "open" if is_open else "closed"
    follows = "AutoSeM may be judged on it" if is_open else "AutoSeM is not judged on it, and that is the finding"
    print(f"{primary}: the gate is {state}, {follows}. {found.words}")
    untrained = sum(
        kept["untrained"] for kept in by_job.values() if kept["method"] in SUBSETS and kept["seed"] in seeds
    )
    if untrained > MOST_UNTRAINED * scores.size:
        print(
            f"in {untrained} of {scores.size} trainings the best model on select was the one before any training: subsets differ "
            "by which of them kept it"
        )
    numbers = {"between": found.between, "within": found.within, "p_value": found.p_value, "untrained": untrained}
    return {"seeds": seeds, "open": is_open, **numbers}


def subset_scores(primary: str, by_job: Mapping[str, Result]) -> tuple[list[int], np.ndarray]:
    """The seeds on which every subset is done, and float64 [subsets, seeds] on *report*."""
    by_subset = [by_seed(by_job, primary, label) for label in SUBSETS]
    seeds = [seed for seed in by_subset[0] if all(seed in each for each in by_subset)]
    return seeds, np.array([[each[seed] for seed in seeds] for each in by_subset])
