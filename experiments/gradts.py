"""`python -m experiments gradts`: GradTS's experiments (Ma et al. 2021, Tables 2 to 6 and 9, Figures 1 to 4).

Three sets of candidates: eight classification tasks of GLUE; these and MELD, a task that is difficult for the encoder; and GLUE
with regression (STS-B) and tagging (POS, NER, chunking). The sets run one after another on one cache, so the second and third
show what is reused when candidates are added.

Full size is the paper's model and training (bert-base-cased, 7 epochs, 5e-5) with every task as the primary, over three seeds;
Dyadic-MELD is left out, since its text is MELD's. `--small` takes three layers of MiniLM, 240 labelled rows per task and two
primaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Options
from experiments.data import data_directory
from experiments.gradts_suites import (
    GRADTS,
    GradTSPlan,
    TaskSet,
    full_plan,
    has_learned,
    load_tasks,
    setup_of,
    small_plan,
    with_all_rows,
)
from sidequest.files import read_json, write_json
from sidequest.recipe import Recipe
from sidequest.records.comparisons import Comparison, Outcome
from sidequest.records.runs import SelectionRecord
from sidequest.report import gradts as figures
from sidequest.report.images import save
from sidequest.report.tables import markdown_table
from sidequest.runs.cells import Job, run_job
from sidequest.runs.peak_memory import PeakMemory
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup
from sidequest.runs.summarising import summarise
from sidequest.search.executors import run_jobs
from sidequest.tasks.task import Task

SIZED_LIKE = "gradts-trial"  # `random-subset` draws as many tasks as this method chose


def main(options: Options) -> dict[str, Any]:
    data = data_directory(options)
    plan = chosen_parts(small_plan(options.seeds) if options.small else full_plan(options.seeds), options)
    tasks = load_tasks(plan, data)
    results: dict[str, Any] = {"model": plan.model.model_dump(mode="json"), "train": plan.train.model_dump(mode="json")}
    for part in plan.parts:
        found = run_part(plan, part, tasks, options)
        results[part.name] = show_part(plan, part, tasks, found, options.out / part.name)
    write_json(options.out / "results.json", results, seal=False)
    return results


def chosen_parts(plan: GradTSPlan, options: Options) -> GradTSPlan:
    """The parts, primaries and encoder that were asked for."""
    known = dict.fromkeys(name for part in plan.parts for name in part.primaries)
    primaries, parts = options.of_primaries(list(known)), options.of_parts([part.name for part in plan.parts])
    kept = [
        replace(part, primaries=tuple(name for name in part.primaries if name in primaries))
        for part in plan.parts
        if part.name in parts
    ]
    return replace(plan, parts=tuple(part for part in kept if part.primaries), model=options.with_encoder(plan.model))


@dataclass(frozen=True)
class Measured:
    """An outcome with what it cost here. minutes: all that the method asked for, also what was found in the caches."""

    outcome: Outcome
    minutes: float
    peak: int | None
    reuse: dict[str, Any]


def run_part(plan: GradTSPlan, part: TaskSet, tasks: Mapping[str, Task], options: Options) -> dict[str, list[Measured]]:
    """All methods and seeds for each primary."""
    found: dict[str, list[Measured]] = {}
    for primary in part.primaries:
        setup = setup_of(plan, part, tasks, primary)
        out = options.out / part.name / primary
        later = [name for name in part.methods if name == "random-subset"]
        first = [name for name in part.methods if name not in later]
        done = _run(setup, [_job(plan, name, seed, out) for seed in range(part.seeds) for name in first], options)
        sizes = {m.outcome.seed: len(m.outcome.auxiliaries) for m in done if m.outcome.method == SIZED_LIKE}
        jobs = [
            _job(plan, name, seed, out, size=max(1, sizes.get(seed, 1))) for seed in range(part.seeds) for name in later
        ]
        found[primary] = done + _run(setup, jobs, options)
    return found


def _job(plan: GradTSPlan, method: str, seed: int, out: Path, **settings: Any) -> Job:
    return Job(method, {**plan.settings.get(method, {}), **settings}, seed, out / method / f"seed-{seed}")


def _run(setup: Setup, jobs: list[Job], options: Options) -> list[Measured]:
    found: list[Measured | None] = [None] * len(jobs)
    for index, measured in run_jobs(measured_job, setup, jobs, options.workers):
        outcome = measured.outcome
        chosen = ", ".join(outcome.auxiliaries) or "none"
        place = f"{setup.suite.name} {setup.suite.primary} {outcome.method} seed {outcome.seed}"
        print(f"{place}: {outcome.score:.3f}, {outcome.x:.1f}x, with {chosen}", flush=True)
        found[index] = measured
    return [measured for measured in found if measured is not None]


def measured_job(setup: Setup, job: Job) -> Measured:
    """One method on one seed, with its peak memory and what it found in the caches; an earlier call's numbers if it is done.

    What it chose is trained in the mixture that all methods share, so that choices are compared and not mixtures.
    """
    path, choice = job.directory / "measured.json", job.directory / "choice"
    with PeakMemory() as memory:
        recipe = select(setup, job.method, settings=job.settings, seed=job.seed, directory=choice)
        rows = {name: len(task.train) for name, task in setup.suite.tasks.items()}
        with_all_rows(recipe, rows).write(job.directory / "recipe.json")
        outcome = run_job(setup, replace(job, selected=True))
    if not path.exists():
        selection = SelectionRecord.read(choice)
        chosen = sum(task.seconds for task in selection.meter.tasks.values())
        seconds = chosen + outcome.training.seconds
        reuse = {
            **selection.heads,
            "trials": selection.meter.trials,
            "trials_reused": selection.meter.trials_reused,
        }
        write_json(path, {"minutes": seconds / 60, "peak": memory.peak, "reuse": reuse})
    return Measured(outcome, **read_json(path))


def show_part(
    plan: GradTSPlan, part: TaskSet, tasks: Mapping[str, Task], found: Mapping[str, list[Measured]], out: Path
) -> dict[str, Any]:
    """Print the tables of one set of candidates, draw its figures, and return the numbers."""
    seeds = list(range(part.seeds))
    comparisons = {
        primary: summarise(
            setup_of(plan, part, tasks, primary), [m.outcome for m in measured], list(part.methods), seeds
        )
        for primary, measured in found.items()
    }
    count = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    learned = {
        primary: has_learned(tasks[primary], [m.outcome.score for m in measured if m.outcome.method == "single"])
        for primary, measured in found.items()
    }
    print(f"\n{part.name} ({part.table} in form): {len(part.tasks)} tasks, {count}, scores on report in per cent")
    for primary in (name for name, enough in learned.items() if not enough):
        print(f"{primary}: no table, single is not above the best constant answer: no choice can be told from another")
    if shown := {primary: measured for primary, measured in found.items() if learned[primary]}:
        print(score_table(part, shown, comparisons))
    print("\nCost: x in single-task runs of the primary; minutes and memory relative to single")
    print(cost_table(part, found))
    print("\nChosen (share of rows where not all)")
    for line in chosen_lines(part, out, seeds):
        print(line)
    print("\nReused")
    for line in reuse_lines(found):
        print(line)
    for primary, comparison in comparisons.items():
        print(f"{primary}: {comparison.verdict}")
    draw(part, out)
    return {
        "seeds": seeds,
        "learned": learned,
        "comparisons": {primary: comparison.to_json() for primary, comparison in comparisons.items()},
        "measured": {
            primary: [
                {
                    "method": m.outcome.method,
                    "seed": m.outcome.seed,
                    "minutes": m.minutes,
                    "peak": m.peak,
                    "reuse": m.reuse,
                }
                for m in measured
            ]
            for primary, measured in found.items()
        },
    }


def score_table(part: TaskSet, found: Mapping[str, list[Measured]], comparisons: Mapping[str, Comparison]) -> str:
    """Rows as in Tables 2 and 4 to 6: methods; columns: primaries, every metric of each, and the verdict against single."""
    rows = []
    for method in part.methods:
        cells = [method]
        for primary, measured in found.items():
            reports = [m.outcome.report for m in measured if m.outcome.method == method]
            cells.append("/".join(f"{100 * np.mean([r[name] for r in reports]):.1f}" for name in reports[0]))
            row = next(row for row in comparisons[primary].rows if row.method == method)
            cells.append("" if method == "single" else f"{100 * row.difference:+.1f}")
        rows.append(cells)
    header = ["", *(cell for primary in found for cell in (primary, "− single"))]
    return markdown_table(header, rows)


def cost_table(part: TaskSet, found: Mapping[str, list[Measured]]) -> str:
    """Tables 3 and 10: the mean over primaries and seeds. `here` is without what was found in caches."""

    def mean(method: str, value: Any) -> float:
        return float(np.mean([value(m) for measured in found.values() for m in measured if m.outcome.method == method]))

    minutes, peak = mean("single", lambda m: m.minutes), mean("single", lambda m: m.peak or 0)
    rows = []
    for method in part.methods:
        memory = f"{mean(method, lambda m: m.peak or 0) / peak:.2f}" if peak else "–"
        rows.append(
            [
                method,
                f"{mean(method, lambda m: m.outcome.selection.x):.1f}",
                f"{mean(method, lambda m: m.outcome.training.x):.1f}",
                f"{mean(method, lambda m: m.minutes) / minutes:.1f}",
                f"{mean(method, lambda m: m.outcome.seconds / 60) / minutes:.1f}",
                memory,
            ]
        )
    return markdown_table(["", "x to choose", "x to train", "minutes", "here", "memory"], rows)


def chosen_lines(part: TaskSet, out: Path, seeds: Sequence[int]) -> list[str]:
    lines = []
    for primary in part.primaries:
        for method in part.methods:
            for seed in seeds if method not in ("single", "all") else ():
                recipe = Recipe.read(out / primary / method / f"seed-{seed}" / "recipe.json")
                kept = {n: e["share"] for n, e in recipe.evidence.get("instances", {}).items()}
                shown = [f"{name} {kept[name]:.0%}" if name in kept else name for name in recipe.auxiliaries]
                tau = recipe.evidence.get("tau", {})
                ranked = ", ".join(f"{name} {tau[name]:.2f}" for name in recipe.evidence["ranking"]) if tau else ""
                lines.append(
                    f"{primary} {method} seed {seed}: {', '.join(shown) or 'none'}" + (f"   τ: {ranked}" if tau else "")
                )
    return lines


def reuse_lines(found: Mapping[str, list[Measured]]) -> list[str]:
    lines = []
    for primary, measured in found.items():
        for m in measured:
            if m.outcome.method in GRADTS:
                heads = "; ".join(
                    f"{what} {len(m.reuse[what])} ({', '.join(m.reuse[what])})" for what in ("reused", "computed")
                )
                trials = f"trials: {m.reuse['trials_reused']} of {m.reuse['trials']} reused"
                lines.append(f"{primary} {m.outcome.method} seed {m.outcome.seed}: heads {heads}; {trials}")
    return lines


def draw(part: TaskSet, out: Path) -> None:
    """Figures 1 to 4 of seed 0, from the recipes alone."""
    recipes = {
        method: [Recipe.read(out / primary / method / "seed-0" / "recipe.json") for primary in part.primaries]
        for method in GRADTS
    }
    for recipe in recipes["gradts-thres"]:
        save(figures.head_importance(recipe.evidence, recipe.primary), out / f"heads-{recipe.primary}", height=300)
    save(figures.tau_between_tasks(recipes["gradts-thres"][0].evidence), out / "tau", width=650, height=550)
    for method, of_method in recipes.items():
        save(figures.selection_map(of_method), out / f"selection-{method}", height=150 + 60 * len(of_method))
    for recipe in recipes["gradts-fg"]:
        if recipe.evidence["instances"]:
            save(figures.row_taus(recipe.evidence), out / f"rows-{recipe.primary}")
