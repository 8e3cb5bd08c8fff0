"""The shape of αVIL's experiments: snapshots per task, stored jobs, ensembles, and verdicts."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import targets
from experiments.targets import TargetJob, TargetsPlan, claims, claims_table, ensemble_score, run_plan, scores, spread
from sidequest.model_settings import CustomSettings
from sidequest.settings import TrainSettings
from sidequest.tasks.suite import Suite
from tests.helpers.tiny import TinyFamily, tiny_task

TASKS = ("one", "two")


def suite(plan, seed):
    first, second = (tiny_task(name, rows=60, seed=10 * seed + number) for number, name in enumerate(TASKS))
    return Suite.of(first, [second])


def family(suite):
    return TinyFamily(suite, CustomSettings())


def plan_of(tmp_path, **changes):
    train = TrainSettings(batch_size=16, patience=None)
    plan = TargetsPlan(
        "tiny", suite, family, tmp_path, TASKS, train, 3, 2, 0.5, {"diw": {"patience": 2}}, probabilities=True
    )
    return replace(plan, **changes)


def test_a_plan_gives_every_method_target_and_seed_once_and_is_read_back(tmp_path, monkeypatch):
    plan = plan_of(tmp_path)
    outcomes = run_plan(plan, tmp_path / "out", workers=1)
    found = sorted((each["method"], each["target"], each["seed"]) for each in outcomes)
    assert found == sorted((method, target, seed) for method in targets.METHODS for target in TASKS for seed in (0, 1))
    monkeypatch.setattr(targets, "train_jointly", None)
    monkeypatch.setattr(targets, "learn_weights", None)
    assert run_plan(plan, tmp_path / "out", workers=1) == outcomes  # nothing is trained again
    with pytest.raises(TypeError):
        run_plan(replace(plan, epochs=4), tmp_path / "out", workers=1)  # another plan is


def test_a_joint_run_keeps_the_best_epoch_of_each_task(tmp_path):
    plan = plan_of(tmp_path, epochs=6)
    learner = targets.TorchLearner(suite(plan, 0), family(suite(plan, 0)), plan.train, seed=0)
    seen: dict[str, list[float]] = {name: [] for name in TASKS}
    evaluate = learner.evaluate

    def watched(task, split="select"):
        score = evaluate(task, split)
        if split == "select":
            seen[task].append(score)
        return score

    learner.evaluate = watched
    outcomes = targets.train_jointly(plan, learner, TASKS, TargetJob("multitask", None, 0, tmp_path))
    for outcome in outcomes:
        trained, last = seen[outcome["target"]][:6], seen[outcome["target"]][6:]
        assert outcome["select"] == max(trained) == last[0]


def test_an_ensemble_is_the_mean_of_probabilities(tmp_path):
    plan = plan_of(tmp_path)
    truth = np.asarray(suite(plan, 0)["one"].splits["report"].target)
    sure, unsure = np.eye(2)[truth], np.eye(2)[1 - truth] * 0.2 + 0.4
    outcomes = [{"probabilities": sure.tolist()}, {"probabilities": unsure.tolist()}]
    assert ensemble_score(plan, outcomes, "one") == 1.0
    assert ensemble_score(plan, outcomes[1:], "one") == 0.0


def test_scores_are_by_seed_and_their_spread_is_in_per_cent():
    outcomes = [
        {"method": "single", "target": "one", "seed": seed, "report": score} for seed, score in [(1, 0.7), (0, 0.5)]
    ]
    assert scores(outcomes, "single", "one", "report") == [0.5, 0.7]
    assert spread([0.5, 0.7]) == pytest.approx({"min": 50, "max": 70, "mean": 60, "deviation": 14.1421}, abs=1e-3)


def test_claims_are_paired_and_corrected_together():
    outcomes = []
    for seed in range(6):
        noise = 0.05 * np.sin(seed)  # the same for all methods: pairing removes it
        for method, level in {"single": 0.8, "multitask": 0.7, "diw": 0.8, "alphavil": 0.801}.items():
            jitter = 0.002 * np.cos(7 * seed + len(method))
            outcomes.append({"method": method, "target": "one", "seed": seed, "report": level + noise + jitter})
    rows = {(row["ours"], row["baseline"]): row for row in claims(outcomes, ["one"])}
    assert rows["multitask", "single"]["verdict"] == "hurts"
    assert rows["alphavil", "multitask"]["verdict"] == "helps"
    assert rows["diw", "single"]["verdict"] == "not shown"
    assert all(row["adjusted_p"] >= row["p_value"] for row in rows.values())
    assert claims_table(list(rows.values())).count("beyond noise") == 2
