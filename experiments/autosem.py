"""`python -m experiments autosem`: AutoSeM's Tables 1 to 3 in form (Guo et al. 2019), and a few-shot primary where it can show.

The few-shot primary is chunking with 200 sentences; its *select* is 1,000 other sentences, drawn with them for each seed, so that
noise does not hide what the paper's effect is. Candidates: POS, NER, CoLA, and POS with shuffled tags, which can only harm.
Nothing bounds the batches of a mixture, so none starves the primary. Full size adds the paper's five primaries with its BiLSTM
and budgets. `--small` is chunking alone with fewer rounds, trainings and rows.
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
from experiments.cells import by_seed, claims, claims_table, mean_and_deviation, method_result
from experiments.data import data_directory
from experiments.jobs import ExperimentJob, Result
from sidequest.files import write_json
from sidequest.model_settings import AutosemSettings, BiLstmSettings, EncoderSettings
from sidequest.recipe import Recipe
from sidequest.records.controls import PROBE, SINGLE_LONG
from sidequest.records.evidence import BanditStage, MixtureStage
from sidequest.report import autosem as figures
from sidequest.report.images import save
from sidequest.report.tables import markdown_table
from sidequest.runs.predictions import PREDICTIONS, read_predictions
from sidequest.runs.setup import Setup
from sidequest.tasks.loading import load_task
from sidequest.tasks.metrics import compute_all
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

FOLDERS = {
    "chunking": "conll2000",
    "ner": "conll2003",
    "pos": "ud-english-ewt",
    "cola": "glue/CoLA",
    "mnli": "glue/MNLI",
    "mrpc": "glue/MRPC",
    "qnli": "glue/QNLI",
    "qqp": "glue/QQP",
    "rte": "glue/RTE",
    "sst2": "glue/SST-2",
    "wnli": "glue/WNLI",
}
SHUFFLED = "pos-shuffled"
# What the paper calls its rows, and ours beside them
ROWS = {
    "single": "Baseline (single)",
    SINGLE_LONG: "single, as many batches as autosem",
    PROBE: "plain read-out",
    "random pair": "Random pair",
    "educated guess": "Educated guess",
    "no stage 1": "w/o Stage-1",
    "grid": "w/o Stage-2",
    "autosem": "Final MTL (autosem)",
    "autosem as published": "autosem, the paper's own settings",
}
CLAIMS = (("autosem", "single"), ("autosem", SINGLE_LONG), ("autosem", "random pair"), ("autosem", "educated guess"))
SHOWN = (("autosem", "no stage 1"), ("autosem", "grid"), ("autosem", "autosem as published"))
# Table 1 (test) and Table 3 (validation: mean, deviation), in per cent: baseline, then autosem
PAPER = {
    "rte": {"test": ("54.0", "58.7"), "validation": ((58.6, 0.94), (62.0, 0.62))},
    "mrpc": {"test": ("75.7/83.7", "78.5/84.5"), "validation": ((78.3, 0.31), (81.1, 0.20))},
    "qnli": {"test": ("74.0", "79.2"), "validation": ((74.9, 0.30), (76.0, 0.18))},
    "cola": {"test": ("30.8", "32.9"), "validation": ((74.6, 0.44), (75.7, 0.18))},
    "sst2": {"test": ("91.3", "91.8"), "validation": ((91.4, 0.36), (91.8, 0.29))},
}


@dataclass(frozen=True)
class AutoSeMPart:
    """One primary and its candidates. train_rows, select_rows: of a few-shot primary, drawn for each seed; None: all, and
    *select* as the loader carves it. guess: the educated guess. stage1, stage2: settings. train: what differs from the model's
    defaults."""

    primary: str
    candidates: tuple[str, ...]
    guess: tuple[str, ...]
    model: EncoderSettings
    train: Mapping[str, Any] = field(default_factory=dict)
    stage1: Mapping[str, Any] = field(default_factory=dict)
    stage2: Mapping[str, Any] = field(default_factory=dict)
    train_rows: int | None = None
    select_rows: int | None = None
    auxiliary_limit: int | None = None
    report_limit: int | None = None
    arms: tuple[str, ...] = tuple(ROWS)

    def method(self, arm: str) -> tuple[str, dict[str, Any]]:
        """The method behind an arm, and its settings."""
        both = {**self.stage1, **self.stage2}
        trials = {"trials": self.stage2["trials"]} if "trials" in self.stage2 else {}
        return {
            "random pair": ("random-subset", {"size": 2}),
            "educated guess": ("autosem-no-stage1", {**self.stage2, "tasks": self.guess}),
            "no stage 1": ("autosem-no-stage1", dict(self.stage2)),
            "grid": ("autosem-grid", {**self.stage1, **trials}),
            "autosem": ("autosem", both),
            "autosem as published": (
                "autosem",
                {**{k: v for k, v in both.items() if k != "initial"}, "as_published": True},
            ),
        }.get(arm, (arm, {}))


TAGGING = AutoSeMPart(
    "chunking",
    ("cola", "ner", "pos", SHUFFLED),
    ("ner", "pos"),
    BiLstmSettings(),
    stage1={"rounds": 200, "batches": 10},
    stage2={"trials": 20},
    train_rows=200,
    select_rows=1000,
    auxiliary_limit=3000,
)
SMALL_TAGGING = replace(
    TAGGING,
    train={"steps": 200},
    stage1={"rounds": 50, "batches": 10},
    stage2={"trials": 6, "initial": 4, "max_primary": 4, "max_auxiliary": 2},
    select_rows=300,
    auxiliary_limit=600,
    report_limit=500,
    arms=("single", PROBE, "random pair", "autosem", SINGLE_LONG),
)
PAIRS = ("mnli", "mrpc", "qnli", "qqp", "rte", "wnli")
TEXTS = ("cola", "sst2", *PAIRS)
GUESSES = {
    "rte": ("mnli", "qnli"),
    "mrpc": ("mnli", "qqp"),
    "qnli": ("mnli", "rte"),
    "cola": ("mnli", "sst2"),
    "sst2": ("cola", "mnli"),
}
PAPER_TRAIN = {"epochs": 20, "batch_size": 32, "patience": 4}
SEEDS, SMALL_SEEDS = 5, 1


def parts(small: bool) -> dict[str, AutoSeMPart]:
    """By primary. In the paper pairs have pairs as candidates, single sentences all tasks."""
    if small:
        return {"chunking": SMALL_TAGGING}
    found = {"chunking": TAGGING}
    for name, guess in GUESSES.items():
        others = tuple(each for each in (PAIRS if name in PAIRS else TEXTS) if each != name)
        wide = AutosemSettings(hidden=512 if name == "mrpc" else 1024, depth=2)
        budget = {"trials": 15 if name == "mrpc" else 20, "runs": 2}
        found[name] = AutoSeMPart(name, others, guess, wide, PAPER_TRAIN, stage2=budget)
    return found


def jobs_of(options: Options) -> list[ExperimentJob]:
    every = parts(options.small)
    return [
        _job(every[name], arm, seed)
        for name in options.of_primaries(list(every))
        for seed in options.seed_range(SMALL_SEEDS if options.small else SEEDS)
        for arm in every[name].arms
    ]


def _job(part: AutoSeMPart, arm: str, seed: int) -> ExperimentJob:
    method, given = part.method(arm)
    facts = {
        "method": method,
        "settings": given,
        "model": part.model.model_dump(mode="json"),
        "train": dict(part.train),
        "candidates": part.candidates,
        "rows": [part.train_rows, part.select_rows, part.auxiliary_limit, part.report_limit],
    }
    alone = arm in ("single", PROBE, "random pair")
    longer = f"{part.primary}-autosem-{seed}" if arm == SINGLE_LONG else None
    return ExperimentJob(arm, part.primary, seed, facts, paper=None if alone else "autosem", needs=longer)


@dataclass(frozen=True)
class AutoSeMShared:
    parts: Mapping[str, AutoSeMPart]
    data: Path
    out: Path
    encoder: str | None


def shared_of(options: Options) -> AutoSeMShared:
    return AutoSeMShared(parts(options.small), data_directory(options), options.out, options.encoder)


def run_job(shared: AutoSeMShared, job: ExperimentJob, needed: Mapping[str, Result]) -> Result:
    part = shared.parts[job.task]
    method, settings = part.method(job.method)
    if job.method == SINGLE_LONG:
        settings = {"batches": next(iter(needed.values()))["batches"]}
    setup = make_setup(part, shared.data, job.seed, shared.encoder)
    return method_result(setup, method, settings, job.seed, directory(shared.out, job.task, job.method, job.seed))


def directory(out: Path, task: str, arm: str, seed: int) -> Path:
    return out / task / arm.replace(" ", "-") / f"seed-{seed}"


def make_setup(part: AutoSeMPart, data: Path, seed: int, encoder: str | None = None) -> Setup:
    limits = {} if part.report_limit is None else {"report_limit": part.report_limit}
    primary = drawn(_load(part.primary, data, limits), part, seed)
    some = {} if part.auxiliary_limit is None else {"limit": part.auxiliary_limit, "report_limit": 10}
    named = {name: _load(name, data, some) for name in part.candidates if name != SHUFFLED}
    if SHUFFLED in part.candidates:
        named[SHUFFLED] = shuffled(named["pos"])
    suite = Suite.of(primary, named.values(), name=f"autosem-{part.primary}")
    model = part.model if encoder is None else part.model.model_copy(update={"encoder": encoder})
    return Setup.of(suite, model, dict(part.train))


def drawn(task: Task, part: AutoSeMPart, seed: int) -> Task:
    """A few-shot primary: other rows of its train file for each seed, none of them both in train and in *select*."""
    if part.train_rows is None or part.select_rows is None:
        return task
    rows = np.random.default_rng([seed, 19]).permutation(len(task.train))
    few, others = rows[: part.train_rows], rows[part.train_rows : part.train_rows + part.select_rows]
    splits = {"train": task.train.take(np.sort(few)), "select": task.train.take(np.sort(others))}
    return replace(task, splits={**task.splits, **splits})


def _load(name: str, data: Path, limits: Mapping[str, int]) -> Task:
    return load_task(name, {"catalog": name, "path": str(data / FOLDERS[name]), **limits}, primary=True)


def shuffled(task: Task) -> Task:
    """The same sentences with their tags dealt out again: nothing to learn but how frequent each tag is."""
    tags: Any = task.train.target  # list<int64>, one list per sentence
    values = np.random.default_rng(0).permutation(tags.flatten().to_numpy())
    offsets = np.concatenate([[0], np.cumsum(pc.list_value_length(tags).to_numpy())]).astype(np.int32)
    target = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)).cast(tags.type)
    splits = {**task.splits, "train": replace(task.train, target=target)}
    return replace(task, name=f"{task.name}-shuffled", splits=splits, notes=(*task.notes, "train: tags shuffled"))


def show(options: Options, by_job: Mapping[str, Result]) -> dict[str, Any]:
    """The paper's tables in form: mean and deviation over seeds, on *select* (its validation) and on *report* (its test)."""
    results: dict[str, Any] = {"paper": PAPER, "parts": {}}
    for name in options.of_primaries(list(parts(options.small))):
        of_suite = {key: kept for key, kept in by_job.items() if kept["task"] == name}
        if not of_suite:
            continue
        claimed = claims(of_suite, [(name, *pair) for pair in CLAIMS])
        shown = claims(of_suite, [(name, *pair) for pair in SHOWN])
        print(f"\n{name}, in per cent{_paper(name)}")
        print(score_table(name, of_suite))
        for rows in (claimed, shown):
            if rows:
                print(claims_table(rows))
        chosen = {
            f"{kept['method']} {kept['seed']}": kept["verdict"] for kept in of_suite.values() if "verdict" in kept
        }
        print("\n".join(f"{key}: {verdict}" for key, verdict in chosen.items() if verdict))
        if (together := ensemble(options, name, of_suite)) is not None:
            print(f"autosem, votes of all seeds: {together}")
        draw(options.out, name, of_suite)
        results["parts"][name] = {"claims": claimed, "shown": shown, "chosen": chosen, "ensemble": together}
    write_json(options.out / "results.json", results, seal=False)
    return results


def _paper(name: str) -> str:
    if name not in PAPER:
        return ""
    (base, ours), (first, second) = PAPER[name]["test"], PAPER[name]["validation"]
    return f"; paper: baseline {base} (validation {first[0]} ± {first[1]}), autosem {ours} ({second[0]} ± {second[1]})"


def score_table(name: str, by_job: Mapping[str, Result]) -> str:
    rows = []
    for arm, title in ROWS.items():
        of_arm = [kept for kept in by_job.values() if kept["method"] == arm]
        if not of_arm:
            continue
        metrics = list(of_arm[0]["metrics"])
        reports = " / ".join(mean_and_deviation(by_seed(by_job, name, arm, metric).values()) for metric in metrics)
        select = mean_and_deviation(kept["select"] for kept in of_arm)
        x = [np.mean([kept["x"][part] for kept in of_arm]) for part in ("choose", "train")]
        seconds = np.mean([kept["seconds"] for kept in of_arm])
        rows.append([title, str(len(of_arm)), select, reports, f"{x[0]:.1f}", f"{x[1]:.1f}", f"{seconds:.0f}"])
    return markdown_table(["", "seeds", "select", "report", "x to choose", "x to train", "seconds"], rows)


def ensemble(options: Options, name: str, by_job: Mapping[str, Result]) -> dict[str, float] | None:
    """Every metric of the majority of all seeds' predictions (footnote 8), where their run directories are at hand."""
    seeds = list(by_seed(by_job, name, "autosem"))
    files = [directory(options.out, name, "autosem", seed) / PREDICTIONS for seed in seeds]
    if name == "chunking" or len(files) < 2 or not all(file.exists() for file in files):
        return None
    votes = np.stack([read_predictions(file)[name] for file in files])
    task = _load(name, data_directory(options), {})
    most = np.array([np.bincount(column).argmax() for column in votes.T])
    return compute_all(task.metrics, most, task.splits["report"].target, task.labels)


def draw(out: Path, name: str, by_job: Mapping[str, Result]) -> None:
    """The figures of the first seed's run, where its directory is at hand."""
    for seed in list(by_seed(by_job, name, "autosem"))[:1]:
        path = directory(out, name, "autosem", seed) / "recipe.json"
        if not path.exists():
            return
        evidence = Recipe.read(path).evidence
        stage1, stage2 = BanditStage.of(evidence["stage1"]), MixtureStage.of(evidence["stage2"])
        save(figures.utility_densities(stage1), out / f"utility-{name}")
        save(figures.utility_over_rounds(stage1), out / f"utility-over-rounds-{name}")
        save(figures.pulls_over_rounds(stage1), out / f"pulls-{name}")
        if stage2.process is not None:
            save(figures.mixture_slices(stage2, stage2.process), out / f"mixtures-{name}")
        save(figures.best_so_far({"autosem": [figures.running_best(stage2)]}), out / f"best-so-far-{name}")
        if stage2.process is not None and len(stage2.tasks) > 1:
            save(figures.mixture_surface(stage2, stage2.process), out / f"surface-{name}", width=650, height=600)
