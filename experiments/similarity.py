"""`python -m experiments similarity`: the experiments of similarity sampling (Kung et al. 2021, Figures 1 and 3 to 9, Table 3).

Tasks of GLUE as primaries, all others as auxiliaries. *select* is carved from train and decides which epoch is kept; the official
development sets are *report*. `single` and every recipe pass over the primary equally often, and the final model is fine-tuned.

Full size is the paper's model, data and N, with the eight tasks of its Table 1. `--small` is STS-B with three layers of MiniLM
and a few thousand rows to choose from. `--only features` draws Figure 1 as well, which trains three discriminators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Options
from experiments.cells import by_seed, claims, claims_table, mean_and_deviation, method_result
from experiments.data import data_directory
from experiments.jobs import ExperimentJob, Result
from experiments.similarity_paper import CURVES, ENDS, SECONDS, printed
from experiments.similarity_plan import (
    METHODS,
    SimilarityPlan,
    StudyRun,
    full_plan,
    load_tasks,
    runs_of,
    setup_of,
    small_plan,
)
from sidequest.files import write_json
from sidequest.learning.protocol import Discrimination, TaskDiscriminator
from sidequest.learning.torch.powers import PowerStores
from sidequest.recipe import Recipe
from sidequest.records.controls import PROBE, SINGLE_LONG
from sidequest.records.evidence import RowRankings
from sidequest.report import similarity as figures
from sidequest.report.flat_map import flat_map
from sidequest.report.images import save
from sidequest.report.tables import markdown_table
from sidequest.runs.setup import Setup
from sidequest.search.discriminator_places import DiscriminatorPlaces
from sidequest.tasks.task import Task

LOSSES = ("bce", "ce")
STAGES = "stage seconds"  # a job of its own

Scores = dict[str, list[float]]  # by label, in per cent, in the order of seeds


def plan_of(options: Options) -> SimilarityPlan:
    plan = small_plan() if options.small else full_plan()
    return replace(plan, model=options.with_encoder(plan.model), primaries=options.of_primaries(plan.primaries))


def jobs_of(options: Options) -> list[ExperimentJob]:
    plan = plan_of(options)
    facts = plan.facts()
    longer = f"bce-{plan.count}"

    def job(run: StudyRun, primary: str, seed: int) -> ExperimentJob:
        needs = ExperimentJob(longer, primary, seed).name if run.method == SINGLE_LONG else None
        paper = None if run.method in ("single", PROBE, SINGLE_LONG) else "similarity"
        return ExperimentJob(run.label, primary, seed, {**facts, "run": vars(run)}, paper, needs)

    return [
        job(run, primary, seed)
        for primary in plan.primaries
        for seed in options.seed_range(plan.seeds)
        for run in runs_of(plan)
    ] + [ExperimentJob(STAGES, primary, options.first_seed, facts, "similarity") for primary in plan.primaries]


@dataclass(frozen=True)
class SimilarityShared:
    plan: SimilarityPlan
    tasks: Mapping[str, Task]
    out: Path


def shared_of(options: Options) -> SimilarityShared:
    plan = plan_of(options)
    return SimilarityShared(plan, load_tasks(plan, data_directory(options, "glue")), options.out)


def run_job(shared: SimilarityShared, job: ExperimentJob, needed: Mapping[str, Result]) -> Result:
    if job.method == STAGES:
        return stage_seconds(shared.plan, shared.tasks, job.task)
    run = next(run for run in runs_of(shared.plan) if run.label == job.method)
    setup = setup_of(shared.plan, shared.tasks, job.task, run.few, job.seed)
    place = shared.out / job.task / run.label / f"seed-{job.seed}"
    settings = {"batches": next(iter(needed.values()))["batches"]} if needed else run.settings
    return method_result(setup, run.method, settings, job.seed, place)


def show(options: Options, by_job: Mapping[str, Result]) -> dict[str, Any]:
    plan = plan_of(options)
    paper = {"curves": CURVES, "ends": ENDS, "seconds": SECONDS}
    results: dict[str, Any] = {"model": plan.model.model_dump(mode="json"), "paper": paper, "primaries": {}}
    scores: dict[str, Scores] = {}
    for primary in plan.primaries:
        of_primary = {key: kept for key, kept in by_job.items() if kept["task"] == primary and kept["method"] != STAGES}
        if not of_primary:
            continue
        names = list(next(iter(of_primary.values()))["metrics"])
        for metric in names:
            print(f"\n{primary}: {metric} on report in per cent; the paper's numbers are of its test set")
            print(curve_table(plan, primary, of_primary, metric))
        labels = dict.fromkeys(kept["method"] for kept in of_primary.values())
        scores[primary] = {label: [100 * x for x in by_seed(of_primary, primary, label).values()] for label in labels}
        draw_primary(plan, primary, names[0], scores[primary], options.out)
        results["primaries"][primary] = scores[primary]
    results["claims"] = claims(by_job, [pair for primary in scores for pair in claimed_pairs(plan, primary)])
    if results["claims"]:
        print("\nDifferences on report, in points, paired by seed")
        print(claims_table(results["claims"]))
    if gains := in_task_gains(plan, scores):
        save(figures.in_task_efficacy(gains), options.out / "figure-7-in-task")
    stages = [kept for kept in by_job.values() if kept["method"] == STAGES]
    if stages:
        print("\nSeconds of each stage (Table 3; the paper takes 10,000 rows)")
        print(time_table(plan, stages, by_job))
    if options.only is not None and "features" in options.only:
        draw_features(plan, load_tasks(plan, data_directory(options, "glue")), options.out)
    write_json(options.out / "results.json", results, seal=False)
    return results


def curve_table(plan: SimilarityPlan, primary: str, by_job: Mapping[str, Result], metric: str) -> str:
    """The numbers of Figures 3 to 5 and the other studies: the mean of seeds, their spread, their cost in x, and the paper's."""

    def cell(label: str) -> str:
        values = by_seed(by_job, primary, label, metric)
        cost = [sum(kept["x"].values()) for kept in by_job.values() if kept["method"] == label]
        return f"{mean_and_deviation(values.values())} ({np.mean(cost):.1f}x, n = {len(values)})" if values else ""

    counts = sorted({*plan.counts, plan.count})
    paper = [f"paper: {name}" for name in METHODS]

    def row(title: str, *ours: str, theirs: Sequence[str] = ("", "", "")) -> list[str]:
        return [title, *ours, *[""] * (4 - len(ours)), *theirs]

    rows = []
    for count in counts:
        ours = [cell(f"{name}-{count}") for name in (*METHODS, "apart")]
        rows.append(row(f"{count:,}", *ours, theirs=printed(primary, count)))
    rows += [row(label, cell(label), theirs=printed(primary, label)) for label in ("single", SINGLE_LONG, PROBE)]
    if plan.studies:
        rows.append(row("all", cell("all"), theirs=printed(primary, "all")))
        rows.append(row(f"resampled, {plan.count:,}", cell("bce-resampled"), cell("ce-resampled")))
    for few in plan.few:
        rows.append(row(f"{few} rows of the primary", cell(f"few-{few}-bce"), "", cell(f"few-{few}-random")))
        rows.append(row(f"{few} rows, single", cell(f"few-{few}-single")))
    return markdown_table(["rows taken", *METHODS, "bce without task losses", *paper], rows)


def claimed_pairs(plan: SimilarityPlan, primary: str) -> list[tuple[str, str, str]]:
    """What the paper says is better; (task, ours, baseline). The small size tests what it is judged by: Holm makes every test
    harder with each that stands beside it."""
    losses = LOSSES if plan.studies else LOSSES[:1]
    pairs = [(f"{name}-{count}", f"random-{count}") for name in losses for count in sorted({*plan.counts, plan.count})]
    others = ("single", "all", "bce-resampled", f"apart-{plan.count}") if plan.studies else ()
    pairs += [(f"bce-{plan.count}", other) for other in (SINGLE_LONG, *others)]
    pairs += [(f"few-{few}-bce", f"few-{few}-random") for few in plan.few]
    return [(primary, *pair) for pair in pairs]


def in_task_gains(plan: SimilarityPlan, scores: Mapping[str, Scores]) -> dict[str, dict[str, float]]:
    """Figure 7: by loss and primary, the ranked rows against as many others of the same tasks."""
    gains: dict[str, dict[str, float]] = {}
    for loss in LOSSES:
        for primary, found in scores.items():
            first, second = found.get(f"{loss}-{plan.count}"), found.get(f"{loss}-resampled")
            if first and second:
                gains.setdefault(loss, {})[primary] = float(np.mean(first) - np.mean(second))
    return gains


def draw_primary(plan: SimilarityPlan, primary: str, metric: str, scores: Scores, out: Path) -> None:
    """Figures 3 to 5 (score against N), 6 (share of each auxiliary), 8 (few-shot, the full size at the right) and 9 (without
    task losses), of what is done."""
    counts = sorted({*plan.counts, plan.count})
    levels = {name: values for name, values in scores.items() if name in ("single", "all")}
    curves = {
        name: {count: scores[f"{name}-{count}"] for count in counts if f"{name}-{count}" in scores} for name in METHODS
    }
    if shown := _some(curves):
        save(figures.score_against_rows(shown, levels, metric, primary), out / f"figure-3-5-{primary}")
    paths = {name: sorted((out / primary / f"{name}-{plan.count}").glob("seed-*/recipe.json")) for name in METHODS}
    recipes = {name: Recipe.read(found[0]) for name, found in paths.items() if found}
    if recipes:
        save(figures.share_per_auxiliary(recipes), out / f"figure-6-{primary}")
    if "bce" in recipes:
        save(figures.score_spread(RowRankings.of(recipes["bce"].evidence)), out / f"scores-{primary}")
    without = {count: scores[f"apart-{count}"] for count in counts if f"apart-{count}" in scores}
    pair = _some({"with task losses": curves["bce"], "without": without})
    save(figures.score_against_rows(pair, {}, metric, f"{primary}: task losses"), out / f"figure-9-{primary}")
    whole = {"bce": f"bce-{plan.count}", "random": f"random-{plan.count}", "single": "single"}
    few = {
        name: {size: scores[f"few-{size}-{name}"] for size in plan.few if f"few-{size}-{name}" in scores}
        | ({plan.primary_rows[primary]: scores[label]} if label in scores else {})
        for name, label in whole.items()
    }
    figure = figures.score_against_rows(_some(few), {}, metric, f"{primary}: few labelled rows")
    figure.update_xaxes(title="rows of the primary")
    save(figure, out / f"figure-8-{primary}")


def _some(curves: Mapping[str, Mapping[int, list[float]]]) -> dict[str, Mapping[int, list[float]]]:
    return {name: curve for name, curve in curves.items() if curve}


def stage_seconds(plan: SimilarityPlan, tasks: Mapping[str, Task], primary: str) -> Result:
    """Table 3: seconds of training the discriminator and of ranking."""
    setup = setup_of(plan, tasks, primary)
    learner, of = _discriminating(setup), _discrimination(plan, "bce")
    learner[TaskDiscriminator].train_discriminator(of)
    training = learner.meter.seconds
    for name in setup.suite.candidates:
        for chunk in range(-(-len(learner[TaskDiscriminator].rows_to_rank(name, of)) // of.chunk)):
            learner[TaskDiscriminator].rank_chunk(name, chunk, of)
    return {"stages": {"training": training, "ranking": learner.meter.seconds - training}}


def time_table(plan: SimilarityPlan, stages: Sequence[Result], by_job: Mapping[str, Result]) -> str:
    rows = []
    for kept in stages:
        for label in (*(("all",) if plan.studies else ()), f"random-{plan.count}", f"bce-{plan.count}"):
            seconds = [
                each["seconds"] for each in by_job.values() if (each["task"], each["method"]) == (kept["task"], label)
            ]
            first = kept["stages"] if label.startswith("bce") else {}
            cells = [f"{first[name]:.1f}" if first else "" for name in ("training", "ranking")]
            theirs = SECONDS.get(kept["task"], {}).get(label.split("-")[0], ("", "", ""))
            rows.append([kept["task"], label, *cells, f"{np.mean(seconds):.1f}" if seconds else "", *theirs])
    columns = ["discriminator", "ranking", "whole job"]
    return markdown_table(["", "", *columns, *(f"paper: {name}" for name in columns)], rows)


def draw_features(plan: SimilarityPlan, tasks: Mapping[str, Task], out: Path) -> None:
    """Figure 1: t-SNE of rows that the model has not learned from, of tasks alone and with either discriminator."""
    setup = setup_of(plan, tasks, plan.primaries[0])
    for loss in ("none", *LOSSES):
        learner, of = _discriminating(setup), _discrimination(plan, loss)
        features = {}
        for name in sorted(setup.suite.tasks):
            ids = learner[TaskDiscriminator].rows_to_rank(name, of)
            chosen = np.random.default_rng(0).permutation(len(ids))[: plan.shown]
            features[name] = learner[TaskDiscriminator].pooled_features(name, ids[np.sort(chosen)], of)
        title = {"none": "Tasks alone", "bce": "With a discriminator (BCE)", "ce": "With a discriminator (CE)"}[loss]
        save(figures.feature_map(flat_map(features), setup.suite.primary, title), out / f"figure-1-{loss}", height=600)


def _discriminating(setup: Setup) -> Any:
    return setup.learner(0, PowerStores(discriminator=DiscriminatorPlaces(setup.facts_together)))


def _discrimination(plan: SimilarityPlan, loss: Any) -> Discrimination:
    return Discrimination(loss, plan.rows, plan.discriminator_epochs)
