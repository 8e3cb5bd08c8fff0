"""The gate of AutoSeM on pairs: its jobs, what each trains, and when it is open."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import Options, autosem, autosem_gate, run
from experiments.autosem_gate import CANDIDATES, GATE, PRIMARIES, SUBSETS, WITH_ALL, gate_suites
from experiments.autosem_suites import FOLDERS, make_setup
from sidequest.errors import SidequestError
from sidequest.files import read_json
from sidequest.records.controls import PROBE, SINGLE_LONG
from tests.helpers.word_suites import word_setup, word_task

LONG, READ_OUT = GATE + SINGLE_LONG, GATE + PROBE


def jobs(**asked):
    return autosem.jobs_of(Options(Path("out"), **asked))


@pytest.mark.parametrize("small", [True, False])
def test_every_subset_is_trained_on_every_seed_with_the_controls_beside_it(small):
    found = jobs(small=small, only=("gate",), primaries=("rte",), seeds=2)
    assert [job.seed for job in found] == [0] * 10 + [1] * 10
    assert {*SUBSETS.values()} == {(), *((a,) for a in CANDIDATES), *PAIRS_OF_CANDIDATES, CANDIDATES}
    assert [job.method for job in found[:10]] == [*SUBSETS, LONG, READ_OUT]
    assert {job.task for job in found} == {"rte"}
    waiting = [job for job in found if job.needs is not None]
    assert [(job.method, job.needs) for job in waiting] == [(LONG, f"rte-gate-mnli-qqp-stsb-{seed}") for seed in (0, 1)]
    assert len({job.plan for job in found}) == len(found)


PAIRS_OF_CANDIDATES = (("mnli", "qqp"), ("mnli", "stsb"), ("qqp", "stsb"))


@pytest.mark.parametrize("small", [True, False])
def test_the_gate_comes_after_the_tables_and_either_can_be_asked_for_alone(small):
    both = [(job.name, job.plan) for job in jobs(small=small)]
    apart = {part: [(job.name, job.plan) for job in jobs(small=small, only=(part,))] for part in ("tables", "gate")}
    assert both == apart["tables"] + ([] if small else apart["gate"])  # the small size is to end in ten minutes
    assert not {*apart["tables"]} & {*apart["gate"]}
    assert {job.task for job in jobs(small=small, only=("gate",))} == {*PRIMARIES}
    assert jobs(small=small, primaries=("chunking",)) == jobs(small=small, primaries=("chunking",), only=("tables",))
    with pytest.raises(SidequestError, match="unknown primary of this experiment 'chunking'"):
        jobs(small=small, only=("gate",), primaries=("chunking",))
    with pytest.raises(SidequestError, match="unknown part of this experiment 'gates'"):
        jobs(small=small, only=("gates",))


def test_the_small_suite_has_few_rows_of_every_task(shared_data):
    suite = gate_suites(True)["rte"]
    one, other = (make_setup(suite, shared_data, seed) for seed in (0, 1))
    assert one.suite.candidates == CANDIDATES
    assert {*one.suite.tasks} <= {*FOLDERS}
    rows = {name: len(task.train) for name, task in one.suite.tasks.items()}
    assert rows == {"rte": 200, "mnli": 225, "qqp": 225, "stsb": 225}
    assert (len(one.suite["rte"].splits["select"]), len(one.suite["rte"].splits["report"])) == (100, 277)
    assert one.suite["rte"].train.ids.tolist() != other.suite["rte"].train.ids.tolist()
    assert (one.train.patience, one.train.epochs, one.train.keep) == (
        None,
        3,
        "last",
    )  # no training is shorter than it is called


class PretendedTraining:
    """Instead of training: what the tasks beside the primary are worth, the seed's luck and noise."""

    def __init__(self, worth, noise=0.002):
        self.worth, self.noise, self.asked = worth, noise, {}

    def result(self, auxiliaries, seed, batches, **more):
        rng = np.random.default_rng([7, seed, len(self.asked)])
        score = 0.6 + 0.05 * seed + sum(self.worth.get(name, 0) for name in auxiliaries) + self.noise * rng.normal()
        cost = {"choose": 0.0, "train": 1.0 + len(auxiliaries)}
        metrics = {"metrics": {"accuracy": score}, "select": score, "report": score}
        return {**metrics, "auxiliaries": sorted(auxiliaries), "x": cost, "batches": batches, **more}

    def recipe(self, setup, recipe, seed):
        (phase,) = recipe.phases
        self.asked[recipe.auxiliaries, seed] = dict(phase.shares)
        return self.result(recipe.auxiliaries, seed, 10 * len(phase.shares), untrained=not recipe.auxiliaries)

    def method(self, setup, method, settings, seed, directory):
        self.asked[method, seed] = settings
        return self.result((), seed, settings.get("batches", 0), verdict="")


@pytest.fixture
def gate(monkeypatch, tmp_path):
    """`gate(worth, seeds)` → the results of the whole command for RTE, and what was trained."""

    def shown(worth, seeds=3, **more):
        training = PretendedTraining(worth, **more)
        monkeypatch.setattr(autosem_gate, "make_setup", lambda suite, data, seed, encoder: None)
        monkeypatch.setattr(autosem_gate, "recipe_result", training.recipe)
        monkeypatch.setattr(autosem_gate, "method_result", training.method)
        place = tmp_path / f"{len([*tmp_path.iterdir()])}"
        only = {"only": ("gate",), "primaries": ("rte",), "seeds": seeds}
        found = run("autosem", Options(place, small=True, data=tmp_path, results=place / "results", **only))
        assert read_json(place / "results.json")["gate"] == found["gate"]
        assert found["parts"] == {}
        return found["gate"]["rte"], training.asked

    return shown


def test_the_gate_is_open_where_subsets_differ_and_closed_where_they_do_not(gate, capsys):
    found, asked = gate({"mnli": 0.03, "stsb": -0.02})
    assert found["open"] is True
    assert found["p_value"] <= 0.01
    printed = capsys.readouterr().out
    assert "rte: the gate is open, AutoSeM may be judged on it. signal" in printed
    for title in ("single ", "mnli, qqp, stsb", "single, as many batches as with all three", "plain read-out"):
        assert f"| {title}" in printed
    assert asked[("mnli", "stsb"), 1] == {"mnli": 1, "rte": 1, "stsb": 1}  # one batch of each in turn
    assert asked[SINGLE_LONG, 2] == {"batches": 40}  # of the training with all three
    assert asked[PROBE, 2] == {}
    closed, _ = gate({})  # seeds differ as much as before, subsets by noise alone
    assert closed["open"] is False
    assert closed["p_value"] > 0.01
    assert (
        "rte: the gate is closed, AutoSeM is not judged on it, and that is the finding. signal"
        in capsys.readouterr().out
    )
    unsure, _ = gate({"mnli": 0.03, "stsb": -0.02}, noise=0.3)  # the same worth, lost in noise
    assert unsure["open"] is False


def test_one_seed_opens_nothing(gate, capsys):
    found, _ = gate({"mnli": 0.03}, seeds=1)
    assert found == {"seeds": [0], "open": None}
    assert "takes two seeds with every subset; 1 so far" in capsys.readouterr().out


def test_controls_are_not_part_of_the_test(gate, tmp_path, capsys):
    """Neither they nor a seed that lacks a subset change it."""
    whole, _ = gate({"mnli": 0.03}, seeds=2)
    kept = {path.name: read_json(path) for path in tmp_path.glob("*/results/autosem/small/*.json")}
    for control in (LONG, READ_OUT):
        for each in kept.values():
            if each["method"] == control:
                each["report"] += 0.5
    lacking = {"third": {**kept["rte-gate-mnli-0.json"], "seed": 2}}
    assert autosem_gate.show_gate("rte", {**kept, **lacking}) == whole
    better = [name for name in kept if "gate-single-0" in name or "gate-single-1" in name]
    changed = {name: {**each, "report": each["report"] + 0.5 * (name in better)} for name, each in kept.items()}
    assert autosem_gate.show_gate("rte", changed)["between"] > 10 * whole["between"]


def test_models_that_are_kept_as_they_were_before_training_are_named(gate, tmp_path, capsys):
    found, _ = gate({"mnli": 0.03}, seeds=2)
    assert found["untrained"] == 2  # of 16: the primary alone on both seeds
    assert "before any training" not in capsys.readouterr().out
    kept = {path.name: read_json(path) for path in tmp_path.glob("*/results/autosem/small/*.json")}
    more = {name: {**each, "untrained": "mnli" not in name} for name, each in kept.items()}
    assert autosem_gate.show_gate("rte", more)["untrained"] == 8
    assert "in 8 of 16 trainings the best model on select was the one before any training" in capsys.readouterr().out


def test_results_of_the_gate_stay_out_of_the_tables(tmp_path, capsys):
    facts = {"task": "rte", "seed": 0, "select": 0.5, "report": 0.5, "metrics": {"accuracy": 0.5}, "seconds": 1.0}
    facts |= {"x": {"choose": 0.0, "train": 1.0}}
    of_gate = {"a": {**facts, "method": GATE + "single"}}
    assert autosem.show(Options(tmp_path), of_gate)["parts"] == {}
    of_tables = {"a": {**facts, "method": "single"}}
    found = autosem.show(Options(tmp_path), of_tables)
    assert (list(found["parts"]), found["gate"]) == (["rte"], {})


@pytest.mark.slow
@pytest.mark.integration
def test_the_whole_gate_on_a_tiny_suite(word_bert, tmp_path, capsys, monkeypatch):
    tasks = [word_task("rte", rows=24), *(word_task(name, rows=24) for name in CANDIDATES)]
    setup = word_setup(word_bert, tasks, patience=None)
    monkeypatch.setattr(autosem_gate, "make_setup", lambda suite, data, seed, encoder: setup)
    options = Options(tmp_path, small=True, data=tmp_path, seeds=2, results=tmp_path / "results")
    options = replace(options, only=("gate",), primaries=("rte",))
    found = run("autosem", options)["gate"]["rte"]
    assert found["seeds"] == [0, 1]
    kept = {path.stem: read_json(path) for path in tmp_path.glob("results/autosem/small/*.json")}
    batches = {name: each["batches"] for name, each in kept.items()}
    assert batches["rte-gate-single-0"] == 3
    assert batches["rte-gate-mnli-qqp-0"] == 9
    assert batches["rte-gate-single-long-0"] == batches["rte-gate-mnli-qqp-stsb-0"] == 12
    assert batches["rte-gate-probe-0"] == 0
    assert WITH_ALL in {each["method"] for each in kept.values()}
