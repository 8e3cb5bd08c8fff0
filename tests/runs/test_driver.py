"""The driver: resumes to the same bytes wherever it was killed, charges every trial, keeps *report* from methods."""

import json

import numpy as np
import pytest

from sidequest.errors import ReportSplitRefused, RunMismatch, SettingsError
from sidequest.learning.fit import single_run_work
from sidequest.methods.base import Method, Plan, Pool, State
from sidequest.model_settings import CustomSettings
from sidequest.recipe import Phase, Recipe
from sidequest.runs.directory import differences, open_run
from sidequest.runs.driver import run_method
from sidequest.runs.setup import Setup
from sidequest.search.trials import LocalTrials, TrialCache, plan_key
from sidequest.settings import TrainSettings
from sidequest.testing.any_order import trials_in_any_order
from tests.helpers.tiny import tiny_learner, tiny_suite

TRAIN = TrainSettings(batch_size=16, epochs=1, patience=None)


class WalkState(State):
    names: list[str]
    seen: list[str] = []
    scores: list[float] = []
    trials: list[float] = []


class Walk(Method):
    """Six rounds on randomly drawn tasks, then a trial per candidate: both ways of working, in one method."""

    name = "walk"
    summary = "for tests"
    State = WalkState

    def start(self, pool, rng):
        return WalkState(names=list(pool.names))

    def round(self, state, learner, rng):
        if len(state.seen) == 0:
            learner.begin(12)
        task = str(rng.choice(state.names))
        learner.train(task, 2)
        scores = [*state.scores, learner.evaluate(learner.primary)]
        return state.model_copy(update={"seen": [*state.seen, task], "scores": scores})

    def ask(self, state, n):
        if len(state.seen) < 6:
            return []
        left = state.names[1 + len(state.trials) :][:n]
        return [Plan(phases=(Phase(shares={state.names[0]: 1, name: 1}),), seed=self.seed) for name in left]

    def tell(self, state, plan, score):
        return state.model_copy(update={"trials": [*state.trials, score]})

    def done(self, state):
        return len(state.trials) == len(state.names) - 1

    def recipe(self, state):
        best = state.names[1 + int(np.argmax(state.trials))]
        phases = (Phase(shares={state.names[0]: 1, best: 1}),)
        evidence = {"seen": state.seen, "scores": state.scores, "trials": state.trials}
        verdict = f"{best}: +0.0000 ± 0.0001 on select"
        return Recipe(method=self.name, primary=state.names[0], phases=phases, evidence=evidence, verdict=verdict)

    def journal(self, state):
        return {"rounds": len(state.seen), "trials": len(state.trials)}


class Killed(Exception):
    pass


def go(tmp_path, directory, *, kill_at=None, workers=1, seconds=0.0):
    learner = tiny_learner()
    facts = {"data": "tiny"}
    trials = LocalTrials(
        learner, TRAIN, facts=lambda tasks: facts, cache=TrialCache(tmp_path / f"cache-{directory.name}")
    )

    def on_round(done, total, entry, meter):
        if kill_at is not None and done >= kill_at:
            raise Killed

    pool = Pool(learner.primary, {name: task.card for name, task in tiny_suite().tasks.items()})
    return run_method(
        Walk(seed=3),
        learner,
        pool,
        trials if workers == 1 else trials_in_any_order(lambda plan: trials.run([plan])[0], workers),
        single_run_work=single_run_work(70, 40, TRAIN),
        directory=directory,
        checkpoint_seconds=seconds,
        on_round=on_round,
    )


@pytest.mark.parametrize("seconds", [0.0, 1e9])
@pytest.mark.parametrize("kill_at", [1, 3, 6, 7])
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path, kill_at, seconds):
    expected = go(tmp_path, tmp_path / "whole")
    directory = tmp_path / "killed"
    with pytest.raises(Killed):
        go(tmp_path, directory, kill_at=kill_at, seconds=seconds)
    assert go(tmp_path, directory, seconds=seconds).to_json() == expected.to_json()
    journals = [(tmp_path / name / "journal.jsonl").read_text() for name in ("whole", "killed")]
    assert journals[0] == journals[1]
    assert [json.loads(line)["call"] for line in journals[0].splitlines()] == list(range(1, 9))


def test_trials_at_once_give_the_same_recipe_and_cost(tmp_path):
    one, two = go(tmp_path, tmp_path / "one"), go(tmp_path, tmp_path / "two", workers=2)
    assert one.evidence == two.evidence
    assert one.cost == two.cost
    assert one.cost.trials == 2
    assert one.cost.x > 2


def test_a_verdict_says_in_words_that_there_is_no_difference(tmp_path):
    assert go(tmp_path, tmp_path / "run").verdict.endswith(": no measurable difference, ± 0.0001, on select")


def test_a_trial_found_in_the_cache_is_charged_all_the_same(tmp_path):
    first = go(tmp_path, tmp_path / "run")
    again_directory = tmp_path / "again" / "run"  # the same cache name, another run
    second = go(tmp_path, again_directory)
    assert first.cost == second.cost


def test_a_plan_is_keyed_by_content():
    plan = Plan(phases=(Phase(shares={"a": 1}),), seed=0, label="one")
    assert plan_key(plan, {"data": 1}) == plan_key(plan.model_copy(update={"label": "two"}), {"data": 1})
    keys = {
        plan_key(plan, {"data": 1}),
        plan_key(plan, {"data": 2}),
        plan_key(plan.model_copy(update={"seed": 1}), {"data": 1}),
        plan_key(Plan(phases=(Phase(shares={"a": 1}, weights={"a": 0.5}),)), {"data": 1}),
    }
    assert len(keys) == 4


def test_a_method_never_sees_report():
    class Peeks(Walk):
        def round(self, state, learner, rng):
            learner.fresh(1).evaluate(learner.primary, "report")
            return state

    learner = tiny_learner()
    pool = Pool(learner.primary, {name: task.card for name, task in tiny_suite().tasks.items()})
    with pytest.raises(ReportSplitRefused, match="report"):
        run_method(Peeks(), learner, pool, LocalTrials(learner, TRAIN), single_run_work=1.0)


def test_a_method_whose_needs_are_not_met_is_refused_before_work():
    class Power:
        pass

    class Needy(Walk):
        requires = (Power,)

    learner = tiny_learner()
    with pytest.raises(SettingsError, match=r"method 'walk': model\.kind=tiny has no Power"):
        run_method(Needy(), learner, Pool("a", {}), LocalTrials(learner, TRAIN), single_run_work=1.0)
    assert learner.meter.work == 0


def test_another_run_in_the_same_directory_is_refused_with_the_difference(tmp_path):
    setup = Setup(tiny_suite(), CustomSettings(), TRAIN)
    assert not open_run(tmp_path / "run", setup, "single", {}, 0)
    assert open_run(tmp_path / "run", setup, "single", {}, 0)
    with pytest.raises(RunMismatch, match="seed: there 0, now 1"):
        open_run(tmp_path / "run", setup, "single", {}, 1)


def test_differences_name_the_place():
    assert differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 2}) == ["  a.b: there 1, now 3"]
    assert differences({"e": 3.0}, {"e": 20.166666666666668}) == ["  e: there 3, now 20.17"]
    assert differences({"e": 0.1}, {"e": 0.1 + 1e-9}) == ["  e: there 0.1, now 0.100000001"]


def test_changed_data_is_refused_with_the_difference():
    setup = Setup(tiny_suite(), CustomSettings(), TRAIN)
    provenance = setup.provenance("single", {}, 0)
    setup.check_data(provenance, ["helper"], "recipe.json")
    provenance["data"]["helper"]["train"] = "0" * 64
    with pytest.raises(
        RunMismatch, match=r"task 'helper', split 'train': the recipe saw 150 rows with content 000000000000"
    ):
        setup.check_data(provenance, ["helper"], "recipe.json")
    setup.check_data(provenance, ["value"], "recipe.json")  # a task that the recipe does not use may change


def test_a_model_without_the_power_is_refused_and_leaves_no_directory(tmp_path):
    from sidequest.runs.selecting import select
    from sidequest.runs.setup import Setup
    from sidequest.tasks.digits import digits_suite

    setup = Setup.of(digits_suite(), train={"epochs": 1})
    with pytest.raises(
        SettingsError, match=r"gradts-thres.*convnet has no attention heads: set model\.kind to hf or custom"
    ):
        select(setup, "gradts-thres", directory=tmp_path / "run")
    assert not (tmp_path / "run").exists()
