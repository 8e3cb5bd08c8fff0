"""`python -m experiments gradts`: GradTS's experiments (Ma et al. 2021, Tables 2 to 6 and 9, Figures 1 to 4), and a direct test.

Three sets of candidates: eight classification tasks of GLUE; these and MELD, a task that is difficult for the encoder; and GLUE
with regression (STS-B) and tagging (POS, NER, chunking). Whatever a method chooses is trained in one mixture, all chosen rows.
The direct test trains the primary with each candidate alone (`with TASK`) and asks whether Kendall's τ of the heads ranks
candidates as their true gains do. No table is shown for a primary that the model has not learned.
The paper's thresholds were tuned for its encoder on three tasks; at full size those of tasks (`gradts-thres, tuned`) and of rows
(`gradts-fg, tuned`) are tuned on *select* of each primary as well.

Full size is the paper's model and training (bert-base-cased, 7 epochs, 5e-5) with every task as the primary, over three seeds;
Dyadic-MELD is left out, since its text is MELD's. The paper's six backbones are six commands (`--encoder`), whose results then
stand beside each other. `--small` takes three layers of MiniLM, 200 training rows of each of six tasks and two primaries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Options
from experiments.cells import (
    by_seed,
    claims,
    claims_table,
    mean_and_deviation,
    method_result,
    recipe_result,
)
from experiments.claims import has_learned
from experiments.data import data_directory
from experiments.gradts_choices import ROW_THRESHOLDS, chosen_result, together, tuned_rows, tuned_tasks
from experiments.gradts_suites import (
    AUTOSEM,
    GRADTS,
    TUNED,
    TUNED_FG,
    WITH,
    GradTSPlan,
    TaskSet,
    full_plan,
    load_tasks,
    setup_of,
    small_plan,
)
from experiments.jobs import ExperimentJob, Result
from experiments.rank_test import RankTest, rank_test
from sidequest.files import read_json, write_json
from sidequest.recipe import Recipe
from sidequest.records.controls import PROBE, SINGLE_LONG
from sidequest.records.evidence import HeadImportances, HeadSimilarity, RowTaus
from sidequest.report import gradts as figures
from sidequest.report.images import save
from sidequest.report.tables import markdown_table
from sidequest.tasks.majority import majority_score
from sidequest.tasks.task import Task

# `random-subset` draws as many tasks as `gradts-trial` chose, and the primary alone is also trained as long as with all tasks.
NEEDS = {"random-subset": "gradts-trial", TUNED: "gradts-thres", SINGLE_LONG: "all"}
# Table 2, in per cent: GradTS-trial, GradTS-fg, single, all tasks
PAPER = {
    "cola": ("61.81", "62.66", "51.00", "46.50"),
    "mrpc": ("82.35/87.32", "83.33/88.40", "78.19/84.58", "78.92/84.91"),
    "mnli": ("83.53/83.42", "83.51/84.06", "83.52/83.88", "83.24/83.34"),
    "qnli": ("90.66", "90.85", "90.26", "90.52"),
    "qqp": ("90.65/87.39", "90.72/87.47", "90.34/87.15", "89.37/85.72"),
}


def plan_of(options: Options) -> GradTSPlan:
    """The parts, primaries and encoder that were asked for."""
    plan = small_plan() if options.small else full_plan()
    known = dict.fromkeys(name for part in plan.parts for name in part.primaries)
    primaries, parts = options.of_primaries(list(known)), options.of_parts([part.name for part in plan.parts])
    kept = [
        replace(part, primaries=tuple(name for name in part.primaries if name in primaries))
        for part in plan.parts
        if part.name in parts
    ]
    return replace(plan, parts=tuple(part for part in kept if part.primaries), model=options.with_encoder(plan.model))


def jobs_of(options: Options) -> list[ExperimentJob]:
    plan = plan_of(options)
    return [
        _job(plan, part, primary, method, seed)
        for part in plan.parts
        for primary in part.primaries
        for seed in options.seed_range(plan.seeds)
        for method in (*part.methods, *(WITH + name for name in part.tasks if part.direct and name != primary))
    ]


def _job(plan: GradTSPlan, part: TaskSet, primary: str, method: str, seed: int) -> ExperimentJob:
    facts = {
        "tasks": part.tasks,
        "model": plan.model.model_dump(mode="json"),
        "train": plan.train.model_dump(mode="json"),
        "rows": [plan.limit, plan.report_limit],
        "settings": _settings(plan, method),
    }
    alone = method in ("single", PROBE, "all", SINGLE_LONG) or method.startswith(WITH)
    task = f"{part.name}/{primary}"
    first = NEEDS.get(method)
    needs = None if first is None else ExperimentJob(first, task, seed).name
    paper = None if alone else "autosem" if method in AUTOSEM else "gradts"
    return ExperimentJob(method, task, seed, facts, paper, needs)


def _settings(plan: GradTSPlan, method: str) -> dict[str, Any]:
    if method == TUNED_FG:
        return {**plan.settings.get("gradts-fg", {}), "thresholds": ROW_THRESHOLDS}
    return dict(plan.settings.get(method, {}))


@dataclass(frozen=True)
class GradTSShared:
    plan: GradTSPlan
    tasks: Mapping[str, Task]
    out: Path


def shared_of(options: Options) -> GradTSShared:
    plan = plan_of(options)
    return GradTSShared(plan, load_tasks(plan, data_directory(options)), options.out)


def run_job(shared: GradTSShared, job: ExperimentJob, needed: Mapping[str, Result]) -> Result:
    name, primary = job.task.split("/")
    part = next(each for each in shared.plan.parts if each.name == name)
    setup = setup_of(shared.plan, part, shared.tasks, primary)
    if job.method.startswith(WITH):
        return recipe_result(setup, together(setup, (job.method.removeprefix(WITH),)), job.seed)
    given = next(iter(needed.values()), None)
    settings = dict(shared.plan.settings.get(job.method, {}))
    place = shared.out / name / primary / job.method.replace(", ", "-") / f"seed-{job.seed}"
    if job.method == TUNED:
        assert given is not None
        return tuned_tasks(setup, given, job.seed)
    if job.method == TUNED_FG:
        return tuned_rows(setup, shared.plan.settings.get("gradts-fg", {}), job.seed, place)
    if job.method in (PROBE, SINGLE_LONG):
        length = {} if given is None else {"batches": given["batches"]}
        return method_result(setup, job.method, length, job.seed, place)
    if given is not None:
        settings["size"] = max(1, len(given["auxiliaries"]))
    return chosen_result(setup, job.method, settings, job.seed, place)


def show(options: Options, by_job: Mapping[str, Result]) -> dict[str, Any]:
    plan, results = plan_of(options), {}
    tasks = load_tasks(plan, data_directory(options)) if by_job else {}
    for part in plan.parts:
        of_set = {key: kept for key, kept in by_job.items() if kept["task"].startswith(f"{part.name}/")}
        if of_set:
            results[part.name] = show_part(plan, part, tasks, of_set, options.out)
            draw(part, options.out)
    table = backbones(options)
    if len(table) > 1:
        print("\nBackbones: points above single, mean over primaries and seeds (Table 9)")
        print(markdown_table(["encoder", *GRADTS], [[name, *cells] for name, cells in table.items()]))
    write_json(options.out / "results.json", results, seal=False)
    return results


def show_part(
    plan: GradTSPlan, part: TaskSet, tasks: Mapping[str, Task], by_job: Mapping[str, Result], out: Path
) -> dict[str, Any]:
    """Print the tables of one set of candidates and return the numbers."""
    print(f"\n{part.name} ({part.table} in form): {len(part.tasks)} tasks, scores on report in per cent")
    learned = {}
    for primary in part.primaries:
        single, probe = (by_seed(by_job, f"{part.name}/{primary}", name) for name in ("single", PROBE))
        if single:
            learned[primary] = has_learned(single, majority_score(tasks[primary]), probe)
            if not learned[primary]:
                print(
                    f"{primary}: no table, single is not above the best constant answer or below the read-out: choices cannot be "
                    "told apart"
                )
    able = [primary for primary, enough in learned.items() if enough]
    for primary in able:
        print(score_table(part, primary, by_job))
    pairs = [
        (f"{part.name}/{primary}", method, baseline)
        for primary in able
        for method in GRADTS
        for baseline in plan.against
    ]
    if claimed := claims(by_job, pairs):
        print(claims_table(claimed))
    pairs_of = {name: _taus_and_gains(part, name, by_job) for name in able} if part.direct else {}
    direct = rank_test(pairs_of)
    if direct is not None:
        print(said_of(direct))
        points = {
            primary: {name: (tau, 100 * gain) for name, (tau, gain) in pairs.items()}
            for primary, pairs in pairs_of.items()
        }
        save(figures.tau_against_gains(points), out / f"tau-and-gains-{part.name}")
    return {"learned": learned, "claims": claimed, "direct": None if direct is None else vars(direct)}


def score_table(part: TaskSet, primary: str, by_job: Mapping[str, Result]) -> str:
    """Rows as in Tables 2 and 4 to 6, with every metric, what was chosen, and the cost (Tables 3 and 10)."""
    task, rows = f"{part.name}/{primary}", []
    methods = dict.fromkeys(kept["method"] for kept in by_job.values() if kept["task"] == task)
    for method in methods:
        of_method = [kept for kept in by_job.values() if kept["task"] == task and kept["method"] == method]
        reports = "/".join(
            mean_and_deviation([k["metrics"][name] for k in of_method]) for name in of_method[0]["metrics"]
        )
        chosen = "; ".join(", ".join(kept["auxiliaries"]) or "none" for kept in of_method)
        x = [f"{np.mean([kept['x'][what] for kept in of_method]):.1f}" for what in ("choose", "train")]
        minutes = [kept["minutes"] for kept in of_method if "minutes" in kept]
        rows.append([method, str(len(of_method)), reports, *x, f"{np.mean(minutes):.1f}" if minutes else "", chosen])
    if primary in PAPER:
        for name, score in zip(("gradts-trial", "gradts-fg", "single", "all"), PAPER[primary], strict=True):
            rows.append([f"paper: {name}", "", score, "", "", "", ""])
    return markdown_table([primary, "seeds", "report", "x to choose", "x to train", "minutes", "chosen"], rows)


def _taus_and_gains(part: TaskSet, primary: str, by_job: Mapping[str, Result]) -> dict[str, tuple[float, float]]:
    """By candidate, over the seeds that are done: τ, and the gain on *report* of training with it alone."""
    task = f"{part.name}/{primary}"
    taus = [kept["tau"] for kept in by_job.values() if kept["task"] == task and kept["method"] == "gradts-thres"]
    single, pairs = by_seed(by_job, task, "single"), {}
    for name in (each for each in part.tasks if each != primary and taus):
        beside = by_seed(by_job, task, WITH + name)
        if both := sorted({*single} & {*beside}):
            gain = float(np.mean([beside[seed] - single[seed] for seed in both]))
            pairs[name] = (float(np.mean([each[name] for each in taus])), gain)
    return pairs


def said_of(test: RankTest) -> str:
    each = ", ".join(f"{name} {value:+.2f}" for name, value in test.by_primary.items())
    return f"Spearman's correlation of τ with true gains: {each}; mean {test.mean:+.2f}, p = {test.p_value:.3f} (permutations)"


def backbones(options: Options) -> dict[str, list[str]]:
    """Table 9: by encoder whose results are at hand, what each variant gains over `single`."""
    size, rows = "small" if options.small else "full", {}
    for place in sorted((options.results / "gradts").glob(f"{size}*")):
        kept = [read_json(path) for path in sorted(place.glob("*.json"))]
        single = {(each["task"], each["seed"]): each["report"] for each in kept if each["method"] == "single"}
        cells = []
        for method in GRADTS:
            gains = [
                each["report"] - single[each["task"], each["seed"]]
                for each in kept
                if each["method"] == method and (each["task"], each["seed"]) in single
            ]
            cells.append(mean_and_deviation(gains))
        rows[place.name.removeprefix(size).strip("-") or "the experiment's own"] = cells
    return rows


def draw(part: TaskSet, out: Path) -> None:
    """Figures 1 to 4 of the first seed, from the choices whose directories are at hand."""
    for method in GRADTS:
        paths = [
            sorted((out / part.name / primary / method).glob("seed-*/choice/recipe.json")) for primary in part.primaries
        ]
        recipes = [Recipe.read(found[0]) for found in paths if found]
        if not recipes:
            continue
        save(figures.selection_map(recipes), out / f"selection-{part.name}-{method}", height=150 + 60 * len(recipes))
        if method == "gradts-thres":
            for recipe in recipes:
                save(
                    figures.head_importance(HeadImportances.of(recipe.evidence), recipe.primary),
                    out / f"heads-{recipe.primary}",
                    height=300,
                )
            save(
                figures.tau_between_tasks(HeadSimilarity.of(recipes[0].evidence)),
                out / f"tau-{part.name}",
                width=650,
                height=550,
            )
        for recipe in recipes if method == "gradts-fg" else ():
            if (taus := RowTaus.find(recipe.evidence)) is not None:
                save(figures.row_taus(taus), out / f"rows-{part.name}-{recipe.primary}")
