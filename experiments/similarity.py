"""`python -m experiments similarity`: the experiments of similarity sampling (Kung et al. 2021, Figures 1 and 3 to 9, Table 3).

RTE, MRPC and STS-B as primaries, the other tasks of GLUE as auxiliaries. *select* is carved from train and decides which epoch is
kept; the official development sets are *report*. `single` and every recipe pass over the primary equally often.

Full size is the paper's model, data and N. `--small` takes a small BiLSTM over MiniLM's frozen states and some 7,000 rows to
choose from. Every run is kept in its directory: the same command goes on where it was stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Options
from experiments.claims import judged
from experiments.data import data_directory
from experiments.similarity_plan import METHODS, SimilarityPlan, full_plan, load_tasks, runs_of, setup_of, small_plan
from sidequest.files import write_json
from sidequest.learning.protocol import Discrimination, TaskDiscriminator
from sidequest.learning.torch.powers import PowerStores
from sidequest.numerics.statistics import paired_comparison
from sidequest.recipe import Recipe
from sidequest.records.comparisons import Outcome
from sidequest.report import similarity as figures
from sidequest.report.flat_map import flat_map
from sidequest.report.images import save
from sidequest.report.tables import markdown_table
from sidequest.runs.cells import Job, run_job
from sidequest.runs.setup import Setup
from sidequest.search.discriminator_places import DiscriminatorPlaces
from sidequest.search.executors import run_jobs
from sidequest.tasks.task import Task

LOSSES = ("bce", "ce")

Scores = dict[str, list[float]]  # by label, in per cent, in the order of seeds


def main(options: Options) -> dict[str, Any]:
    plan = small_plan(options.seeds) if options.small else full_plan(options.seeds)
    plan = replace(plan, model=options.with_encoder(plan.model), primaries=options.of_primaries(plan.primaries))
    return run_plan(plan, load_tasks(plan, data_directory(options, "glue")), options)


def run_plan(plan: SimilarityPlan, tasks: Mapping[str, Task], options: Options) -> dict[str, Any]:
    results: dict[str, Any] = {"seeds": plan.seeds, "model": plan.model.model_dump(mode="json"), "primaries": {}}
    scores: dict[str, Scores] = {}
    for primary in plan.primaries:
        outcomes = run_primary(plan, tasks, primary, options)
        scores[primary] = {label: [100 * each.score for each in found] for label, found in outcomes.items()}
        metric = tasks[primary].metric
        print(f"\n{primary}: {metric} on report in per cent, {plan.seeds} seeds")
        print(curve_table(plan, outcomes))
        draw_primary(plan, primary, metric, scores[primary], options.out)
        results["primaries"][primary] = {
            label: [{"score": e.score, "x": e.x, "seconds": e.seconds} for e in found]
            for label, found in outcomes.items()
        }
    results["claims"] = claims(plan, scores)
    print("\nDifferences on report, in points, paired by seed")
    print(claims_table(results["claims"]))
    gains = {
        loss: {p: _mean_difference(scores[p], f"{loss}-{plan.count}", f"{loss}-resampled") for p in scores}
        for loss in LOSSES
    }
    save(figures.in_task_efficacy(gains), options.out / "figure-7-in-task")
    results["times"] = times(plan, tasks, options.out)
    print("\nSeconds of each stage (Table 3), seed 0")
    print(time_table(results["times"]))
    draw_features(plan, tasks, options.out)
    write_json(options.out / "results.json", results, seal=False)
    return results


def run_primary(
    plan: SimilarityPlan, tasks: Mapping[str, Task], primary: str, options: Options
) -> dict[str, list[Outcome]]:
    """Outcomes by label, in the order of seeds. Few-shot runs have other train rows for each seed, hence setups of their own."""
    found: dict[str, list[Outcome]] = {}
    runs, seeds = runs_of(plan), range(plan.seeds)
    together: list[tuple[int | None, Sequence[int]]] = [(None, seeds)]
    together += [(few, [seed]) for few in plan.few for seed in seeds]
    for few, some in together:
        mine = [run for run in runs if run.few == few]
        jobs = [
            Job(run.method, dict(run.settings), seed, options.out / primary / run.label / f"seed-{seed}")
            for seed in some
            for run in mine
        ]
        labels = [run.label for _ in some for run in mine]
        setup = setup_of(plan, tasks, primary, few, some[0])
        for index, outcome in run_jobs(run_job, setup, jobs, options.workers):
            cost = outcome.x
            place = f"{primary} {labels[index]} seed {outcome.seed}"
            print(f"{place}: {100 * outcome.score:.1f}, {cost:.1f}x, {outcome.seconds:.0f} s", flush=True)
            found.setdefault(labels[index], []).append(outcome)
    return {label: sorted(each, key=lambda outcome: outcome.seed) for label, each in found.items()}


def curve_table(plan: SimilarityPlan, outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """The numbers of Figures 3 to 5 and the other studies: the mean of seeds, their spread, and the cost in x."""

    def cell(label: str) -> str:
        if label not in outcomes:
            return ""
        values = [100 * each.score for each in outcomes[label]]
        cost = np.mean([each.x for each in outcomes[label]])
        spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
        return f"{np.mean(values):.1f}{spread} ({cost:.1f}x)"

    counts = sorted({*plan.counts, plan.count})
    rows = [[f"{count:,}", *(cell(f"{name}-{count}") for name in METHODS), cell(f"apart-{count}")] for count in counts]
    rows += [[label, cell(label), "", "", ""] for label in ("single", "all")]
    rows.append([f"resampled, {plan.count:,}", cell("bce-resampled"), cell("ce-resampled"), "", ""])
    for few in plan.few:
        single = f"few-{few}-single"
        rows.append([f"{few} rows of the primary", cell(f"few-{few}-bce"), "", cell(f"few-{few}-random"), ""])
        rows.append([f"{few} rows, single", cell(single), "", "", ""])
    return markdown_table(["rows taken", *METHODS, "bce without task losses"], rows)


def claims(plan: SimilarityPlan, scores: Mapping[str, Scores]) -> list[dict[str, Any]]:
    """What the paper says is better, per primary; a curve is compared by its mean over N. Holm over all of them, 5 %."""
    counts = sorted({*plan.counts, plan.count})
    rows = []
    for primary, found in scores.items():
        curves = {name: np.mean([found[f"{name}-{count}"] for count in counts], axis=0) for name in METHODS}
        pairs = {
            "bce − random, mean over N": (curves["bce"], curves["random"]),
            "ce − random, mean over N": (curves["ce"], curves["random"]),
            f"bce − single, N = {plan.count:,}": (found[f"bce-{plan.count}"], found["single"]),
            f"bce − all, N = {plan.count:,}": (found[f"bce-{plan.count}"], found["all"]),
            "in-task efficacy, bce": (found[f"bce-{plan.count}"], found["bce-resampled"]),
            "in-task efficacy, ce": (found[f"ce-{plan.count}"], found["ce-resampled"]),
            "task losses, bce": (found[f"bce-{plan.count}"], found[f"apart-{plan.count}"])
            if f"apart-{plan.count}" in found
            else None,
            **{
                f"few-shot {few}, bce − random": (found[f"few-{few}-bce"], found[f"few-{few}-random"])
                for few in plan.few
            },
        }
        for name, pair in pairs.items():
            if pair is not None:
                rows.append({"primary": primary, "claim": name, **vars(paired_comparison(*map(list, pair)))})
    return judged(rows)


def claims_table(rows: Sequence[Mapping[str, Any]]) -> str:
    table = [
        [
            row["primary"],
            row["claim"],
            f"{row['mean']:+.2f}",
            f"{row['low']:+.2f} to {row['high']:+.2f}",
            f"{row['adjusted_p']:.3f}",
            row["verdict"],
        ]
        for row in rows
    ]
    return markdown_table(["", "points", "mean", "95 % interval", "p (Holm)", ""], table)


def _mean_difference(scores: Scores, first: str, second: str) -> float:
    return float(np.mean(scores[first]) - np.mean(scores[second]))


def draw_primary(plan: SimilarityPlan, primary: str, metric: str, scores: Scores, out: Path) -> None:
    """Figures 3 to 5 (score against N), 6 (share of each auxiliary), 8 (few-shot) and 9 (without task losses)."""
    counts = sorted({*plan.counts, plan.count})
    levels = {name: scores[name] for name in ("single", "all")}
    curves = {name: {count: scores[f"{name}-{count}"] for count in counts} for name in METHODS}
    save(figures.score_against_rows(curves, levels, metric, primary), out / f"figure-3-5-{primary}")
    recipes = {name: Recipe.read(out / primary / f"{name}-{plan.count}" / "seed-0" / "recipe.json") for name in METHODS}
    save(figures.share_per_auxiliary(recipes), out / f"figure-6-{primary}")
    save(figures.score_spread(recipes["bce"].evidence), out / f"scores-{primary}")
    without = {count: scores[f"apart-{count}"] for count in counts if f"apart-{count}" in scores}
    pair = {"with task losses": curves["bce"], "without": without}
    save(figures.score_against_rows(pair, {}, metric, f"{primary}: task losses"), out / f"figure-9-{primary}")
    few = {name: {size: scores[f"few-{size}-{name}"] for size in plan.few} for name in ("bce", "random", "single")}
    shown = figures.score_against_rows(few, {}, metric, f"{primary}: few labelled rows")
    shown.update_xaxes(title="rows of the primary")
    save(shown, out / f"figure-8-{primary}")


def times(plan: SimilarityPlan, tasks: Mapping[str, Task], out: Path) -> list[dict[str, Any]]:
    """Table 3: seconds of training the discriminator, of ranking, and of stage 2, of the runs of seed 0 with N = `count`."""
    rows = []
    for primary in plan.primaries:
        setup = setup_of(plan, tasks, primary)
        learner, of = _discriminating(setup), _discrimination(plan, "bce")
        learner[TaskDiscriminator].train_discriminator(of)
        training = learner.meter.seconds
        for name in setup.suite.candidates:
            for chunk in range(-(-len(learner[TaskDiscriminator].rows_to_rank(name, of)) // of.chunk)):
                learner[TaskDiscriminator].rank_chunk(name, chunk, of)
        stage1 = {"training": training, "ranking": learner.meter.seconds - training}
        for label, first in (("all", {}), (f"random-{plan.count}", {}), (f"bce-{plan.count}", stage1)):
            rows.append(
                {"primary": primary, "run": label, **first, "stage 2": _stage2(out / primary / label / "seed-0")}
            )
    return rows


def _stage2(directory: Path) -> float:
    return Outcome.read(directory).training.seconds


def time_table(rows: Sequence[Mapping[str, Any]]) -> str:
    stages = ("training", "ranking", "stage 2")
    table = [
        [
            row["primary"],
            row["run"],
            *(f"{row[stage]:.1f}" if stage in row else "" for stage in stages),
            f"{sum(row.get(stage, 0.0) for stage in stages):.1f}",
        ]
        for row in rows
    ]
    return markdown_table(["", "", "discriminator", "ranking", "training and fine-tuning", "in all"], table)


def draw_features(plan: SimilarityPlan, tasks: Mapping[str, Task], out: Path) -> None:
    """Figure 1: t-SNE of rows that the model has not learned from, of tasks alone and with either discriminator."""
    setup = setup_of(plan, tasks, plan.primaries[0])
    for loss in ("none", *LOSSES):
        learner, of = _discriminating(setup), _discrimination(plan, loss)
        found = {}
        for name in sorted(setup.suite.tasks):
            ids = learner[TaskDiscriminator].rows_to_rank(name, of)
            chosen = np.random.default_rng(0).permutation(len(ids))[: plan.shown]
            found[name] = learner[TaskDiscriminator].pooled_features(name, ids[np.sort(chosen)], of)
        title = {"none": "Tasks alone", "bce": "With a discriminator (BCE)", "ce": "With a discriminator (CE)"}[loss]
        save(figures.feature_map(flat_map(found), setup.suite.primary, title), out / f"figure-1-{loss}", height=600)


def _discriminating(setup: Setup) -> Any:
    return setup.learner(0, PowerStores(discriminator=DiscriminatorPlaces(setup.facts_together)))


def _discrimination(plan: SimilarityPlan, loss: Any) -> Discrimination:
    return Discrimination(loss, plan.rows, plan.discriminator_epochs)
