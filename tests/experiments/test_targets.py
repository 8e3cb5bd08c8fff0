"""The shape of αVIL's experiments: snapshots per task, stored jobs, ensembles, and verdicts."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from experiments import nlu, targets
from experiments.jobs import ResultStore, run_missing
from experiments.targets import TargetsPlan, claims, claims_table, ensemble_score, outcomes_of, run_job, scores, spread
from sidequest.model_settings import CustomSettings
from sidequest.settings import TrainSettings
from sidequest.tasks.suite import Suite
from tests.helpers.pretended_device import pretended_device
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
        "tiny",
        suite,
        family,
        tmp_path,
        TASKS,
        train,
        3,
        range(2),
        tmp_path / "out",
        0.5,
        {"diw": {"patience": 2}},
        probabilities=True,
    )
    return replace(plan, **changes)


def test_a_plan_gives_every_method_target_and_seed_once(tmp_path):
    plan = plan_of(tmp_path)
    outcomes = outcomes_of(run_missing(run_job, plan, plan.jobs(), ResultStore("tiny", "small", tmp_path)))
    found = sorted((each["method"], each["target"], each["seed"]) for each in outcomes)
    assert found == sorted((method, target, seed) for method in targets.METHODS for target in TASKS for seed in (0, 1))
    assert replace(plan, epochs=4).jobs()[0].plan != plan.jobs()[0].plan
    assert not (plan.out / "unfinished").exists() or not any((plan.out / "unfinished").iterdir())


def learner_of(plan):
    return targets.TorchLearner(suite(plan, 0), family(suite(plan, 0)), plan.train, seed=0)


def test_the_controls_train_as_long_as_all_tasks_together_or_not_at_all(tmp_path, monkeypatch):
    plan = plan_of(tmp_path, methods=("probe", "single", "single-long", "multitask"), seeds=range(1))
    trained: dict[str, int] = {}
    train = targets.TorchLearner.train

    def counted(learner, task, batches, **more):
        trained[name] += batches
        return train(learner, task, batches, **more)

    monkeypatch.setattr(targets.TorchLearner, "train", counted)
    found = {}
    for job in plan.jobs():
        name = job.name
        trained[name] = 0
        found[name] = run_job(plan, job, {})["targets"]
    assert {*found} == {"all-probe-0", "all-multitask-0"} | {
        f"{t}-single{long}-0" for t in TASKS for long in ("", "-long")
    }
    untrained = learner_of(plan)
    assert {task: each["report"] for task, each in found["all-probe-0"].items()} == {
        task: untrained.evaluate(task, "report") for task in TASKS
    }
    assert trained["all-probe-0"] == 0
    assert trained["one-single-long-0"] == trained["two-single-long-0"] == trained["all-multitask-0"]
    assert trained["one-single-0"] + trained["two-single-0"] == trained["all-multitask-0"]
    assert trained["one-single-0"] < trained["one-single-long-0"]
    assert found["one-single-0"] != found["all-probe-0"]["one"]


def test_a_joint_run_keeps_the_best_epoch_of_each_task(tmp_path):
    plan = plan_of(tmp_path, epochs=6)
    learner = learner_of(plan)
    seen: dict[str, list[float]] = {name: [] for name in TASKS}
    evaluate = learner.evaluate

    def watched(task, split="select"):
        score = evaluate(task, split)
        if split == "select":
            seen[task].append(score)
        return score

    learner.evaluate = watched
    outcomes = targets.train_jointly(plan, learner, TASKS, 0, tmp_path / "place")
    for outcome in outcomes:
        trained, last = seen[outcome["target"]][:6], seen[outcome["target"]][6:]
        assert outcome["select"] == max(trained) == last[0]


def test_a_joint_run_that_is_stopped_goes_on_to_the_same_end(tmp_path, monkeypatch):
    plan = plan_of(tmp_path, epochs=6)
    whole = targets.train_jointly(plan, learner_of(plan), TASKS, 0, tmp_path / "whole")
    monkeypatch.setenv("SIDEQUEST_CHECKPOINT_SECONDS", "0")
    stopped = learner_of(plan)
    looks, evaluate = [], stopped.evaluate

    def failing(task, split="select"):
        looks.append(task)
        if len(looks) > 7:
            raise KeyboardInterrupt
        return evaluate(task, split)

    stopped.evaluate = failing
    with pytest.raises(KeyboardInterrupt):
        targets.train_jointly(plan, stopped, TASKS, 0, tmp_path / "place")
    again = learner_of(plan)
    trained, train = [], again.train
    again.train = lambda task, n, **more: (trained.append(task), train(task, n, **more))[1]
    assert targets.train_jointly(plan, again, TASKS, 0, tmp_path / "place") == whole
    batches = sum(max(1, round(plan.fraction * again.epoch_batches(task))) for task in TASKS)
    assert len(trained) == 3 * batches  # the first three epochs were there


def test_an_ensemble_is_the_mean_of_probabilities(tmp_path):
    plan = plan_of(tmp_path)
    truth = np.asarray(suite(plan, 0)["one"].splits["report"].target)
    sure, unsure = np.eye(2)[truth], np.eye(2)[1 - truth] * 0.2 + 0.4
    outcomes = [{"probabilities": sure.tolist()}, {"probabilities": unsure.tolist()}]
    assert ensemble_score(plan, outcomes, "one") == 1.0
    assert ensemble_score(plan, outcomes[1:], "one") == 0.0


def test_probabilities_are_computed_where_the_model_is(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "inference_mode", torch.no_grad)  # views of a wrapped tensor need it
    plan = plan_of(tmp_path)
    parts = suite(plan, 0), family(suite(plan, 0)), plan.train
    here = targets.report_probabilities(targets.TorchLearner(*parts, seed=0, device="cpu"), "one")
    with pretended_device() as device:
        learner = targets.TorchLearner(*parts, seed=0, device=device)
        np.testing.assert_allclose(targets.report_probabilities(learner, "one"), here, atol=1e-6)
        learner.to_device = lambda batch: batch
        with pytest.raises(RuntimeError, match="same device"):
            targets.report_probabilities(learner, "one")


def test_scores_are_by_seed_and_their_spread_is_in_per_cent():
    outcomes = [
        {"method": "single", "target": "one", "seed": seed, "report": score} for seed, score in [(1, 0.7), (0, 0.5)]
    ]
    assert scores(outcomes, "single", "one", "report") == {0: 0.5, 1: 0.7}
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


def test_a_language_task_is_judged_only_where_single_training_has_learned_it(tmp_path, monkeypatch):
    plan = plan_of(tmp_path)
    monkeypatch.setattr(nlu, "TARGETS", TASKS)
    truth = {task: np.asarray(suite(plan, 0)[task].splits["report"].target) for task in TASKS}
    constant = {task: np.bincount(labels).max() / len(labels) for task, labels in truth.items()}

    def outcomes(above, over_probe):
        return [
            {
                "method": method,
                "target": task,
                "seed": 0,
                "report": constant[task] + above - over_probe * (method == "probe"),
            }
            for task in TASKS
            for method in ("single", "probe")
        ]

    assert json.dumps(nlu.gate(plan, outcomes(0.1, 0.05))) == '{"one": true, "two": true}'
    assert nlu.gate(plan, outcomes(0.1, -0.05)) == {"one": False, "two": False}
    assert nlu.gate(plan, outcomes(0.02, 0.01)) == {"one": False, "two": False}
    assert nlu.gate(plan, []) == {}
