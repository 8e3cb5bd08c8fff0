"""`python -m experiments autosem`: AutoSeM's Tables 1 to 3 in form (Guo et al. 2019), and a few-shot primary where it can show.

The few-shot primary is chunking with 200 sentences; its *select* is 1,000 other sentences, drawn with them for each seed, so that
noise does not hide what the paper's effect is. Candidates: POS, NER, CoLA, and POS with shuffled tags, which can only harm.
Nothing bounds the batches of a mixture, so none starves the primary. Full size adds the paper's five primaries with its BiLSTM
and budgets. `--small` is chunking alone with fewer rounds, trainings and rows.

These are the part `tables`. The part `gate` asks whether a choice of tasks can show on MRPC and RTE, fine-tuned: see
`experiments.autosem_gate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments import Options
from experiments.autosem_gate import GATE, gate_jobs, gate_suites, run_gate_job, show_gate
from experiments.autosem_suites import ROWS, AutoSeMPart, AutoSeMSuite, load, make_setup, parts
from experiments.cells import by_seed, claims, claims_table, method_result, score_table
from experiments.data import data_directory
from experiments.jobs import ExperimentJob, Result
from sidequest.files import write_json
from sidequest.recipe import Recipe
from sidequest.records.controls import PROBE, SINGLE_LONG
from sidequest.records.evidence import BanditStage, MixtureStage
from sidequest.report import autosem as figures
from sidequest.report.images import save
from sidequest.runs.predictions import PREDICTIONS, read_predictions
from sidequest.tasks.metrics import compute_all

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
SEEDS, SMALL_SEEDS = 5, 1
PARTS = ("tables", "gate")


@dataclass(frozen=True)
class Asked:
    """What was asked for, by primary."""

    tables: Mapping[str, AutoSeMPart]
    gates: Mapping[str, AutoSeMSuite]

    @classmethod
    def by(cls, options: Options) -> Asked:
        # The small size is to end in ten minutes; its gate, which does not, is asked for by name.
        asked = PARTS[:1] if options.small and options.only is None else options.of_parts(PARTS)
        tables = parts(options.small) if "tables" in asked else {}
        gates = gate_suites(options.small) if "gate" in asked else {}
        wanted = options.of_primaries(list(dict.fromkeys((*tables, *gates))))
        return cls(
            {name: part for name, part in tables.items() if name in wanted},
            {name: suite for name, suite in gates.items() if name in wanted},
        )


def jobs_of(options: Options) -> list[ExperimentJob]:
    asked, seeds = Asked.by(options), options.seed_range(SMALL_SEEDS if options.small else SEEDS)
    tables = [_job(part, arm, seed) for part in asked.tables.values() for seed in seeds for arm in part.arms]
    return tables + [job for suite in asked.gates.values() for job in gate_jobs(suite, seeds)]


def _job(part: AutoSeMPart, arm: str, seed: int) -> ExperimentJob:
    method, given = part.method(arm)
    facts = {"method": method, "settings": given, **part.facts()}
    alone = arm in ("single", PROBE, "random pair")
    longer = f"{part.primary}-autosem-{seed}" if arm == SINGLE_LONG else None
    return ExperimentJob(arm, part.primary, seed, facts, paper=None if alone else "autosem", needs=longer)


@dataclass(frozen=True)
class AutoSeMShared:
    asked: Asked
    data: Path
    out: Path
    encoder: str | None


def shared_of(options: Options) -> AutoSeMShared:
    return AutoSeMShared(Asked.by(options), data_directory(options), options.out, options.encoder)


def run_job(shared: AutoSeMShared, job: ExperimentJob, needed: Mapping[str, Result]) -> Result:
    place = directory(shared.out, job.task, job.method, job.seed)
    if job.method.startswith(GATE):
        return run_gate_job(shared.asked.gates[job.task], shared.data, shared.encoder, job, needed, place)
    part = shared.asked.tables[job.task]
    method, settings = part.method(job.method)
    if job.method == SINGLE_LONG:
        settings = {"batches": next(iter(needed.values()))["batches"]}
    setup = make_setup(part, shared.data, job.seed, shared.encoder)
    return method_result(setup, method, settings, job.seed, place)


def directory(out: Path, task: str, arm: str, seed: int) -> Path:
    return out / task / arm.replace(" ", "-").replace(":", "") / f"seed-{seed}"


def show(options: Options, by_job: Mapping[str, Result]) -> dict[str, Any]:
    """The paper's tables in form, and the gate of pairs."""
    asked, results = Asked.by(options), {"paper": PAPER, "parts": {}, "gate": {}}
    for name in asked.tables:
        of_suite = {key: kept for key, kept in by_job.items() if kept["task"] == name and kept["method"] in ROWS}
        if of_suite:
            results["parts"][name] = show_part(options, name, of_suite)
    for name in asked.gates:
        of_gate = {k: kept for k, kept in by_job.items() if kept["task"] == name and kept["method"].startswith(GATE)}
        if of_gate:
            results["gate"][name] = show_gate(name, of_gate)
    write_json(options.out / "results.json", results, seal=False)
    return results


def show_part(options: Options, name: str, of_suite: Mapping[str, Result]) -> dict[str, Any]:
    """Mean and deviation over seeds, on *select* (the paper's validation) and on *report* (its test)."""
    claimed = claims(of_suite, [(name, *pair) for pair in CLAIMS])
    shown = claims(of_suite, [(name, *pair) for pair in SHOWN])
    print(f"\n{name}, in per cent{_paper(name)}")
    print(score_table(name, of_suite, ROWS))
    for rows in (claimed, shown):
        if rows:
            print(claims_table(rows))
    chosen = {f"{kept['method']} {kept['seed']}": kept["verdict"] for kept in of_suite.values() if "verdict" in kept}
    print("\n".join(f"{key}: {verdict}" for key, verdict in chosen.items() if verdict))
    if (together := ensemble(options, name, of_suite)) is not None:
        print(f"autosem, votes of all seeds: {together}")
    draw(options.out, name, of_suite)
    return {"claims": claimed, "shown": shown, "chosen": chosen, "ensemble": together}


def _paper(name: str) -> str:
    if name not in PAPER:
        return ""
    (base, ours), (first, second) = PAPER[name]["test"], PAPER[name]["validation"]
    return f"; paper: baseline {base} (validation {first[0]} ± {first[1]}), autosem {ours} ({second[0]} ± {second[1]})"


def ensemble(options: Options, name: str, by_job: Mapping[str, Result]) -> dict[str, float] | None:
    """Every metric of the majority of all seeds' predictions (footnote 8), where their run directories are at hand."""
    seeds = list(by_seed(by_job, name, "autosem"))
    files = [directory(options.out, name, "autosem", seed) / PREDICTIONS for seed in seeds]
    if name == "chunking" or len(files) < 2 or not all(file.exists() for file in files):
        return None
    votes = np.stack([read_predictions(file)[name] for file in files])
    task = load(name, data_directory(options), {})
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
