"""`python -m experiments autosem`: AutoSeM's Tables 1 to 3 in form (Guo et al. 2019), on RTE and MRPC, and on a few-shot primary.

For each primary, over seeds: single-task training, stage 1 and 2, and for MRPC and the few-shot primary the ablations without
either stage (Table 2; the paper has them for MRPC alone), beside all tasks, size-proportional sampling and a random
pair. Candidates of RTE and MRPC are GLUE's other sentence-pair classification tasks, as in the paper. The few-shot
primary is chunking with 200 sentences; its candidates are POS, which helps, NER, and POS with shuffled labels, which
can only harm.

Full size is the paper's BiLSTM and budget on all rows. `--small` caps rows, lengths and steps, so that everything takes
about 40 minutes of one core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments import Options
from experiments.data import data_directory
from sidequest.files import write_json
from sidequest.formatting import between, signed
from sidequest.methods.autosem.stage2 import phase_of
from sidequest.methods.base import Plan
from sidequest.model_settings import AutosemSettings
from sidequest.numerics.mixture_search import RandomSearch
from sidequest.numerics.mixtures import MixtureSpace
from sidequest.progress import Progress
from sidequest.recipe import Recipe
from sidequest.records.comparisons import Comparison, MissingCell, Outcome
from sidequest.report import autosem as figures
from sidequest.report.images import save
from sidequest.report.tables import markdown_table
from sidequest.runs.comparing import compare
from sidequest.runs.selecting import local_trials
from sidequest.runs.setup import Setup
from sidequest.settings import TrainSettings
from sidequest.tasks.loading import load_task
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

PAIRS = {"mnli": "MNLI", "mrpc": "MRPC", "qnli": "QNLI", "qqp": "QQP", "rte": "RTE", "wnli": "WNLI"}
FULL_METHOD, NO_STAGE1, NO_STAGE2 = "autosem", "autosem-no-stage1", "autosem-grid"
ROWS = {  # as the paper's Table 2 calls them
    "single": "Baseline (single)",
    "all": "All tasks",
    "size": "By size",
    "random-subset": "Random pair",
    NO_STAGE1: "w/o Stage-1",
    NO_STAGE2: "w/o Stage-2",
    FULL_METHOD: "Final MTL (autosem)",
}
# Table 3 (validation) and Table 1 (test, accuracy), in per cent
PAPER = {
    "rte": {"baseline": (58.6, 0.94, 54.0), "autosem": (62.0, 0.62, 58.7)},
    "mrpc": {"baseline": (78.3, 0.31, 75.7), "autosem": (81.1, 0.20, 78.5)},
}


@dataclass(frozen=True)
class PartSize:
    """How large one suite is. limit: labelled rows per task, of which *select* takes its part; None: all."""

    model: AutosemSettings
    train: TrainSettings
    stage1: Mapping[str, Any]
    stage2: Mapping[str, Any]
    limit: int | None = None
    auxiliary_limit: int | None = None
    report_limit: int | None = None

    def settings(self, methods: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        given = {
            FULL_METHOD: {**self.stage1, **self.stage2},
            NO_STAGE1: dict(self.stage2),
            NO_STAGE2: {**self.stage1, "trials": self.stage2["trials"]},
            "random-subset": {"size": 2},
        }
        return {name: given[name] for name in (*methods, "random-subset")}


@dataclass(frozen=True)
class PrimaryPart:
    """One primary and its candidates."""

    primary: str
    size: PartSize
    methods: tuple[str, ...]
    candidates: tuple[str, ...] = field(default=())


FEW_SHOT_LIMIT = 267  # a quarter of it is *select*: 200 sentences to train on
SMALL_GLUE = PartSize(
    AutosemSettings(hidden=64, layers=1, max_length=48),
    TrainSettings(epochs=4, batch_size=32, max_batches=180, learning_rate=4e-3),
    {"rounds": 60, "batches": 5},
    {"trials": 8, "initial": 4},
    limit=800,
    auxiliary_limit=800,
)
SMALL_TAGGING = PartSize(
    AutosemSettings(hidden=64, layers=1, max_length=64),
    TrainSettings(epochs=8, batch_size=16, max_batches=312, learning_rate=1e-2),
    {"rounds": 100, "batches": 4},
    {"trials": 10, "initial": 5},
    limit=FEW_SHOT_LIMIT,
    auxiliary_limit=1500,
    report_limit=500,
)
PAPER_TRAIN = TrainSettings(epochs=20, batch_size=32, patience=4)
FULL_RTE = PartSize(AutosemSettings(hidden=1024, depth=2), PAPER_TRAIN, {}, {"trials": 20, "runs": 2})
FULL_MRPC = replace(FULL_RTE, model=AutosemSettings(hidden=512, depth=2), stage2={"trials": 15, "runs": 2})
FULL_TAGGING = PartSize(
    AutosemSettings(hidden=256),
    TrainSettings(epochs=20, batch_size=16),
    {},
    {"trials": 20},
    limit=FEW_SHOT_LIMIT,
    auxiliary_limit=3000,
)
SEEDS = 3


def parts(small: bool) -> list[PrimaryPart]:
    every = (FULL_METHOD, NO_STAGE1, NO_STAGE2)
    return [
        PrimaryPart("rte", SMALL_GLUE if small else FULL_RTE, (FULL_METHOD,), tuple(sorted({*PAIRS} - {"rte"}))),
        PrimaryPart("mrpc", SMALL_GLUE if small else FULL_MRPC, every, tuple(sorted({*PAIRS} - {"mrpc"}))),
        PrimaryPart("chunking", SMALL_TAGGING if small else FULL_TAGGING, every, ("ner", "pos", "pos-shuffled")),
    ]


def main(options: Options) -> dict[str, Any]:
    data = data_directory(options)
    seeds = list(range(options.seeds or SEEDS))
    results: dict[str, Any] = {"paper": PAPER, "parts": {}}
    every = {part.primary: part for part in parts(options.small)}
    for part in (every[name] for name in options.of_primaries(list(every))):
        setup = replace(make_setup(part, data), model=options.with_encoder(part.size.model))
        out = options.out / part.primary
        comparison = compare(
            setup, part.size.settings(part.methods), seeds, out, workers=options.workers, progress=_PrintCells()
        )
        recipes = {m: [Recipe.read(out / m / f"seed-{s}" / "recipe.json") for s in seeds] for m in part.methods}
        searches = {m: [figures.running_best(r.evidence["stage2"]) for r in of] for m, of in recipes.items()}
        if part.primary == "chunking":
            searches["random"] = [random_search(setup, recipe) for recipe in recipes[FULL_METHOD]]
        show(part, setup, comparison, recipes)
        draw(recipes[FULL_METHOD][0], searches, out)
        results["parts"][part.primary] = {
            "comparison": comparison.to_json(),
            "chosen": {m: [r.phases[0].shares for r in of] for m, of in recipes.items()},
            "verdicts": {m: [r.verdict for r in of] for m, of in recipes.items()},
            "ties": [r.evidence["stage1"]["ties"] for r in recipes[FULL_METHOD]],
            "searches": searches,
        }
    write_json(options.out / "results.json", results, seal=False)
    return results


def make_setup(part: PrimaryPart, data: Path) -> Setup:
    size = part.size
    limits = {"limit": size.limit, "report_limit": size.report_limit}
    primary = _load(part.primary, data, {k: v for k, v in limits.items() if v is not None})
    some = {} if size.auxiliary_limit is None else {"limit": size.auxiliary_limit, "report_limit": 10}
    named = {name: _load(name, data, some) for name in part.candidates if name != "pos-shuffled"}
    if "pos-shuffled" in part.candidates:
        named["pos-shuffled"] = shuffled(named["pos"])
    suite = Suite.of(primary, named.values(), name=f"autosem-{part.primary}")
    return Setup(suite, size.model, size.train)


def _load(name: str, data: Path, limits: Mapping[str, int]) -> Task:
    folders = {"chunking": "conll2000", "ner": "conll2003", "pos": "ud-english-ewt"}
    folder = folders[name] if name in folders else f"glue/{PAIRS[name]}"
    return load_task(name, {"catalog": name, "path": str(data / folder), **limits}, primary=True)


def shuffled(task: Task) -> Task:
    """The same sentences with their tags dealt out again: nothing to learn but how frequent each tag is."""
    tags: Any = task.train.target  # list<int64>, one list per sentence
    values = np.random.default_rng(0).permutation(tags.flatten().to_numpy())
    offsets = np.concatenate([[0], np.cumsum(pc.list_value_length(tags).to_numpy())]).astype(np.int32)
    target = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)).cast(tags.type)
    splits = {**task.splits, "train": replace(task.train, target=target)}
    return replace(task, name=f"{task.name}-shuffled", splits=splits, notes=(*task.notes, "train: tags shuffled"))


def random_search(setup: Setup, recipe: Recipe) -> list[float]:
    """Best so far of random mixtures of the same tasks, as many as the process tried, with the same seed."""
    stage2, seed = recipe.evidence["stage2"], recipe.provenance["seed"]
    given = stage2["settings"]
    space = MixtureSpace(len(stage2["tasks"]), given["max_primary"], given["max_auxiliary"])
    search = RandomSearch(space, given["trials"], seed)
    plans = [
        Plan(phases=(phase_of(recipe.primary, stage2["tasks"], suggestion.mixture),), seed=seed)
        for suggestion in search.suggest((), search.budget)
    ]
    return np.maximum.accumulate([result.score for result in local_trials(setup).run(plans)]).tolist()


class _PrintCells(Progress):
    def job(self, done: int, total: int, label: str, result: Outcome | MissingCell, x: float) -> None:
        if isinstance(result, MissingCell):
            print(f"{done}/{total} {result.method} seed {result.seed} failed: {result.error}", flush=True)
            return
        chosen = ", ".join(result.auxiliaries) or "none"
        print(
            f"{done}/{total} {result.method} seed {result.seed}: report {result.score:.4f}, {result.x:.1f}x, "
            f"{result.seconds:.0f} s, with {chosen}",
            flush=True,
        )


def show(part: PrimaryPart, setup: Setup, comparison: Comparison, recipes: Mapping[str, list[Recipe]]) -> None:
    """The paper's tables in form: mean and deviation over seeds, on *select* (its validation) and on *report* (its test)."""
    metric = setup.suite.tasks[part.primary].metric
    rows = []
    for row in comparison.rows:
        selects = [100 * each.select[metric] for each in comparison.outcomes if each.method == row.method]
        first = row.to_baseline
        against = (
            "" if first is None else f"{signed(100 * first.mean, 1)} {between(100 * first.low, 100 * first.high, 1)}"
        )
        rows.append(
            [
                ROWS[row.method],
                _mean_and_deviation(selects),
                _mean_and_deviation([100 * score for score in row.scores]),
                against,
                row.verdict,
                f"{row.x:.1f}",
                f"{row.seconds:.0f}",
            ]
        )
    rows.sort(key=lambda cells: list(ROWS.values()).index(cells[0]))
    majority = "" if comparison.majority is None else f"; majority class {100 * comparison.majority:.1f}"
    print(f"\n{part.primary}, {comparison.metric} in per cent, {len(comparison.seeds)} seeds{majority}")
    print(markdown_table(["", "select", "report", "report − single", "verdict", "x", "seconds"], rows))
    for method, of in recipes.items():
        for recipe in of:
            print(f"{method} seed {recipe.provenance['seed']}: {recipe.verdict}; {recipe.cost.x:.1f}x to choose")
    ties = [recipe.evidence["stage1"]["ties"] for recipe in recipes[FULL_METHOD]]
    print(f"rounds of stage 1 whose score equals the round's before: {', '.join(f'{tie:.0%}' for tie in ties)}")
    print(comparison.verdict)


def _mean_and_deviation(values: list[float]) -> str:
    deviation = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{deviation}"


def draw(recipe: Recipe, searches: Mapping[str, list[list[float]]], out: Path) -> None:
    """All figures of one run of the whole method, and best-so-far curves over all seeds."""
    stage1, stage2 = recipe.evidence["stage1"], recipe.evidence["stage2"]
    save(figures.utility_densities(stage1), out / "utility")
    save(figures.utility_over_rounds(stage1), out / "utility-over-rounds")
    save(figures.pulls_over_rounds(stage1), out / "pulls")
    save(figures.mixture_slices(stage2), out / "mixtures")
    if len(stage2["tasks"]) > 1:
        save(figures.mixture_surface(stage2), out / "surface", width=650, height=600)
    save(figures.best_so_far(searches), out / "best-so-far")
