"""exp3s and counterfactual on the MTL bandit and on a tiny torch learner."""

from __future__ import annotations

import numpy as np
import pytest

from sidequest.errors import DataError, SettingsError, SidequestError
from sidequest.learning.fit import fit
from sidequest.methods.base import Pool
from sidequest.methods.policies.counterfactual import Counterfactual, CounterfactualSettings
from sidequest.methods.policies.exp3s import Exp3S, Exp3SSettings
from sidequest.methods.policies.log import read_log
from sidequest.methods.policies.logged_runs import with_improvement
from sidequest.methods.policies.task_policy import policy_phase, run_steps
from sidequest.numerics.off_policy import softmax
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings, parse
from sidequest.simulation.mtl_bandit import BanditEnvironment, MTLBandit, replay
from sidequest.tasks.task import Form, Objective, TaskCard
from sidequest.testing.check_method import CANDIDATES, check_method
from tests.helpers.gains import gain_simulated
from tests.helpers.tiny import tiny_learner, tiny_suite

STEPS = 400
TRAIN = TrainSettings(epochs=1, max_batches=STEPS)


def bandit(seed=1, **options) -> MTLBandit:
    return MTLBandit(BanditEnvironment.draw(np.random.default_rng(seed), steps=STEPS), **options)


def pool_of(learner, goal="average", train=TRAIN) -> Pool:
    cards = {
        name: TaskCard(name, Objective.CLASSIFICATION, Form.TEXT, "", size, 10.0, 2, 100)
        for name, size in learner.sizes.items()
    }
    return Pool(learner.primary, cards, goal, train)


def run(method, learner=None, goal="average", **options):
    learner = learner or bandit()
    trials = LocalTrials(learner, TRAIN, goal=goal)
    return run_method(method, learner, pool_of(learner, goal), trials, single_run_work=STEPS, **options)


def exp3s(seed=0, **settings) -> Exp3S:
    return Exp3S(Exp3SSettings(**{"steps": STEPS, **settings}), seed=seed)


def counterfactual(seed=0, **settings) -> Counterfactual:
    small = {"steps": STEPS, "entropy_weights": (0.2, 0.5), "cma_iterations": 10}
    return Counterfactual(CounterfactualSettings(**{**small, **settings}), seed=seed)


class TestLength:
    def test_average_is_passes_over_all_rows(self):
        learner = tiny_learner()
        pool = pool_of(learner, train=TrainSettings(epochs=2, batch_size=16))
        assert run_steps(pool) == 2 * (5 + 10 + 6)

    def test_primary_is_a_uniform_mixture(self):
        learner = tiny_learner()
        pool = pool_of(learner, "primary", TrainSettings(epochs=2, batch_size=16))
        assert run_steps(pool) == 2 * 3 * 5
        assert run_steps(pool_of(learner, "primary", TrainSettings(epochs=2, batch_size=16, max_batches=7))) == 7

    def test_a_primary_share_that_is_too_small_is_raised(self):
        phase = policy_phase(
            ["p", "a", "b"], np.array([0.01, 0.66, 0.33]), goal="primary", steps=9, least_primary_share=0.1
        )
        assert phase.shares == pytest.approx({"p": 0.1, "a": 0.6, "b": 0.3})
        assert phase.batches is None
        phase = policy_phase(
            ["p", "a", "b"], np.array([0.01, 0.66, 0.33]), goal="average", steps=9, least_primary_share=0.1
        )
        assert phase.shares["p"] == 0.01
        assert phase.batches == 9


class TestExp3S:
    def test_recipe_samples_from_the_mean_policy(self):
        recipe = run(exp3s(eta=0.02))
        shares = recipe.phases[0].shares
        assert recipe.phases[0].order == "sample"
        assert recipe.phases[0].batches == STEPS
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-5)
        assert recipe.evidence["mean_policy"] == shares
        assert sum(recipe.evidence["drawn"].values()) == STEPS
        assert recipe.evidence["policy_over_time"]["step"][-1] == STEPS

    def test_mean_policy_is_what_the_log_says(self, tmp_path):
        """Σ_t 1[a_t = k] has the mean Σ_t π_t(k): counts lie within five standard deviations of it."""
        recipe = run(exp3s(eta=0.02), directory=tmp_path)
        log = read_log(tmp_path / "logs" / "exp3s.parquet")
        counts = np.bincount(log.steps["task"], minlength=8)
        expected = np.array([recipe.evidence["mean_policy"][name] for name in log.tasks]) * STEPS
        assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()
        assert (log.goal, log.reward, log.about["method"]) == ("average", "prediction-gain", "exp3s")

    def test_learns_to_draw_the_arm_that_gains(self):
        """Of two arms one never moves. The other's gains shrink as it learns, so its scaled rewards do too, yet it must win."""
        environment = BanditEnvironment(
            STEPS, np.array([0.5, 0.5]), np.ones(2), np.array([1e-4, 0.0]), np.zeros(2), np.array([10, 10])
        )
        recipe = run(exp3s(eta=0.05), MTLBandit(environment))
        assert recipe.evidence["final_policy"]["arm-1"] > 0.75

    def test_goal_primary_measures_the_primary(self, tmp_path):
        """Training other arms only lets the primary be forgotten: the primary is drawn most."""
        learner = bandit(primary="arm-4")
        recipe = run(exp3s(eta=0.05), learner, goal="primary", directory=tmp_path)
        shares = recipe.phases[0].shares
        assert max(shares, key=shares.get) == recipe.primary == "arm-4"
        assert recipe.phases[0].batches is None
        steps = read_log(tmp_path / "logs" / "exp3s.parquet").steps
        assert (steps["reward"][steps["task"] != 0] <= 0).all()

    def test_one_task_is_trained_alone(self):
        environment = BanditEnvironment(9, np.ones(1), np.ones(1), np.full(1, 0.1), np.zeros(1), np.array([10]))
        assert run(exp3s(steps=9), MTLBandit(environment)).phases[0].shares == {"arm-1": 1.0}

    def test_both_readings_of_the_importance_weight_run(self):
        assert run(exp3s(eta=0.05)).phases != run(exp3s(eta=0.05, importance="printed")).phases


class TestCounterfactual:
    def test_beats_a_uniform_policy_on_the_bandit(self):
        learner = bandit()
        recipe = run(counterfactual(entropy_weights=(0.25, 0.5, 1.0)), learner)
        policy = np.array([recipe.phases[0].shares[name] for name in learner.environment.names])
        rng = np.random.default_rng(0)

        def score(shares):
            arms = rng.choice(8, size=(STEPS, 10), p=shares / shares.sum())
            return replay([learner.environment] * 10, arms)[1][-1].mean()

        assert score(policy) > score(np.full(8, 1 / 8)) + 0.01

    def test_policy_is_the_closed_form_of_a_uniform_log(self, tmp_path):
        """π ∝ exp(r̄/λ), up to the unequal counts of a finite log and the search's own error."""
        recipe = run(counterfactual(iterations=1, entropy_weights=(0.3,), cma_iterations=50), directory=tmp_path)
        assert recipe.cost.trials == 0  # one λ leaves nothing to choose
        names = list(recipe.evidence["policy"])
        means = np.array([recipe.evidence["mean_reward"][name] for name in names])
        found = np.array([recipe.evidence["policy"][name] for name in names])
        np.testing.assert_allclose(found, softmax(means / 0.3), atol=0.03)

    def test_pays_for_logging_runs_and_trials(self):
        recipe = run(counterfactual(iterations=2))
        assert recipe.cost.trials == 4
        assert recipe.cost.batches == 2 * STEPS + 4 * STEPS
        assert [each["iteration"] for each in recipe.evidence["candidates"]] == [1, 1, 2, 2]
        scores = [each["score"] for each in recipe.evidence["candidates"]]
        best = recipe.evidence["candidates"][int(np.argmax(scores))]
        assert recipe.phases[0].shares == best["policy"]
        assert sum(recipe.evidence["logged"].values()) == 2 * STEPS

    def test_second_logging_run_trains_a_new_model_with_the_best_policy(self, tmp_path):
        recipe = run(counterfactual(iterations=2), directory=tmp_path)
        first, second = (read_log(tmp_path / "logs" / f"logging-{number}.parquet") for number in (1, 2))
        assert set(first.steps["propensity"]) == {1 / 8}
        earlier = [each for each in recipe.evidence["candidates"] if each["iteration"] == 1]
        best = max(earlier, key=lambda each: each["score"])
        assert second.about["policy"] == pytest.approx(best["policy"], abs=1e-6)
        for name, loss in zip(
            second.tasks, [second.steps["loss"][second.steps["task"] == k][0] for k in range(8)], strict=True
        ):
            assert loss == pytest.approx(-np.log(1e-6)), name  # every arm starts at a score of 0 again

    def test_log_holds_equation_16(self, tmp_path):
        run(counterfactual(iterations=1, round_steps=33), directory=tmp_path)
        log = read_log(tmp_path / "logs" / "logging-1.parquet")
        last: dict[int, float] = {}
        for step in log.steps:
            task, loss = int(step["task"]), step["loss"]
            improved = task in last and loss < last[task]
            assert step["reward"] == pytest.approx(1 - np.exp(-loss) if improved else 0.0, abs=1e-12)
            last[task] = loss

    def test_learns_from_its_own_log_without_a_logging_run(self, tmp_path):
        first = run(counterfactual(iterations=1), directory=tmp_path / "first")
        again = run(counterfactual(log=str(tmp_path / "first")))
        assert again.cost.batches == 2 * STEPS  # the trials alone
        assert again.evidence["logging_policies"] == []
        assert again.evidence["logged"] == first.evidence["logged"]
        assert again.evidence["mean_reward"] == first.evidence["mean_reward"]

    def test_learns_from_the_log_of_exp3s(self, tmp_path):
        run(exp3s(eta=0.02), directory=tmp_path)
        log = read_log(tmp_path / "logs" / "exp3s.parquet")
        recipe = run(counterfactual(log=str(tmp_path), entropy_weights=(0.3,)))
        assert recipe.cost.batches == 0
        rewards = with_improvement(log)["reward"]
        assert ((rewards >= 0) & (rewards <= 1)).all()
        means = [rewards[log.steps["task"] == k].mean() for k in range(8)]
        assert list(recipe.evidence["mean_reward"].values()) == pytest.approx(means, abs=1e-6)

    def test_given_logs_and_iterations_add_up(self, tmp_path):
        run(exp3s(), directory=tmp_path)
        recipe = run(counterfactual(log=(str(tmp_path),), iterations=2, entropy_weights=(0.3,)))
        assert recipe.cost.batches == STEPS  # the second improvement's logging run
        assert sum(recipe.evidence["logged"].values()) == 2 * STEPS
        latest = run(counterfactual(log=str(tmp_path), iterations=2, entropy_weights=(0.3,), keep_logs="latest"))
        assert sum(latest.evidence["logged"].values()) == STEPS

    def test_warns_where_the_log_does_not_cover_the_policy(self):
        recipe = run(counterfactual(steps=20, iterations=1, entropy_weights=(0.05,)))
        assert any("worth only" in warning for warning in recipe.evidence["warnings"])
        assert "worth only" in recipe.verdict
        recipe = run(counterfactual(steps=4, iterations=1, entropy_weights=(1.0,)))
        assert any("no step on" in warning for warning in recipe.evidence["warnings"])
        assert run(counterfactual(iterations=1, entropy_weights=(1.0,))).evidence["warnings"] == []

    @pytest.mark.parametrize("estimator", ["wis", "is", "dr"])
    def test_every_estimator_runs(self, estimator):
        recipe = run(counterfactual(iterations=1, entropy_weights=(0.5,), estimator=estimator))
        assert sum(recipe.phases[0].shares.values()) == pytest.approx(1.0, abs=1e-5)

    def test_log_of_another_goal_is_refused(self, tmp_path):
        run(exp3s(), directory=tmp_path)
        with pytest.raises(DataError, match="goal 'average'"):
            run(counterfactual(log=str(tmp_path)), goal="primary")

    def test_goal_primary_prefers_the_primary(self, tmp_path):
        learner = bandit(primary="arm-4")
        recipe = run(counterfactual(iterations=1, entropy_weights=(0.1,)), learner, "primary", directory=tmp_path)
        shares = recipe.phases[0].shares
        assert max(shares, key=shares.get) == "arm-4"
        steps = read_log(tmp_path / "logs" / "logging-1.parquet").steps
        assert (steps["reward"][steps["task"] != 0] == 0).all()
        assert (steps["reward"][steps["task"] == 0] > 0).any()


METHODS = {"exp3s": exp3s, "counterfactual": counterfactual}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("exp3s", {"steps": 60, "round_steps": 20}),
        ("counterfactual", {"steps": 60, "round_steps": 20, "entropy_weights": [0.2, 1.0], "cma_iterations": 3}),
    ],
)
def test_methods_keep_the_contract(name, settings):
    recipe = check_method(name, settings=settings, make_learner=gain_simulated)
    assert set(recipe.tasks) == {"primary", "close", "far", "harmful", "near"}


def test_goal_primary_finds_what_helps_the_primary():
    """In the simulation `close` and `near` help the primary, `far` does nothing and `harmful` harms."""
    learner = gain_simulated(CANDIDATES, 0)
    settings = CounterfactualSettings(steps=1000, iterations=1, entropy_weights=(0.2,), cma_iterations=30)
    trials = LocalTrials(learner, TRAIN)
    recipe = run_method(Counterfactual(settings), learner, learner.pool(TRAIN), trials, single_run_work=1)
    shares = recipe.phases[0].shares
    assert min(shares["primary"], shares["close"], shares["near"]) > 2 * max(shares["far"], shares["harmful"])


class TestBudgets:
    def test_exp3s_shares_are_of_the_steps_that_ran(self):
        recipe = run(exp3s(steps=400, round_steps=50), budget=0.4)
        assert recipe.provenance["stopped_by_budget"] == 0.4
        assert recipe.evidence["steps"] < 400
        assert sum(recipe.phases[0].shares.values()) == pytest.approx(1, abs=1e-4)

    def test_counterfactual_answers_by_the_policies_that_were_tried(self):
        whole = run(counterfactual(steps=200, entropy_weights=(0.1, 0.5, 1.0)))
        after_logging = run(counterfactual(steps=200, entropy_weights=(0.1, 0.5, 1.0)), budget=whole.cost.x / 2)
        assert after_logging.provenance["stopped_by_budget"]
        assert after_logging.evidence["candidates"]
        assert len(after_logging.phases[0].shares) == 8

    def test_before_any_policy_is_learned_the_goal_decides(self):
        learner = bandit()
        average = run(counterfactual(steps=200), learner, budget=1e-6)
        assert set(average.tasks) == set(learner.tasks)
        assert "no policy was learned" in average.verdict

    def test_a_method_that_cannot_answer_leaves_all_tasks_for_the_goal_average(self):
        class Never(type(counterfactual())):
            anytime = False

        recipe = run(Never(counterfactual(steps=200).settings), budget=1e-6)
        assert len(recipe.tasks) == 8


class TestSettings:
    @pytest.mark.parametrize(("given", "expected"), [(0.2, (0.2,)), ("0.1,0.2", (0.1, 0.2)), ([0.1, 0.2], (0.1, 0.2))])
    def test_lambdas_as_a_user_types_them(self, given, expected):
        assert parse(CounterfactualSettings, {"entropy_weights": given}, "x").entropy_weights == expected

    @pytest.mark.parametrize(
        ("cls", "values", "message"),
        [
            (CounterfactualSettings, {"entropy_weights": -1}, "at least 0"),
            (CounterfactualSettings, {"entropy_weights": [0.1, float("nan")]}, "finite number"),
            (CounterfactualSettings, {"entropy_weights": [0.2, 0.2000000001]}, "six digits"),
            (CounterfactualSettings, {"least_primary_share": 1}, "less than 1"),
            (Exp3SSettings, {"low": 80, "high": 20}, "low is below high"),
        ],
    )
    def test_values_without_meaning_are_refused(self, cls, values, message):
        with pytest.raises(SettingsError, match=message):
            parse(cls, values, "x")

    def test_as_published(self):
        assert CounterfactualSettings(as_published=True).keep_logs == "latest"
        assert Exp3SSettings(as_published=True).importance == "printed"
        assert Exp3SSettings().importance == "sampled"


def test_a_gain_that_is_not_finite_names_task_and_step():
    class Diverging(MTLBandit):
        def train_with_gain(self, task, *, target=None):
            before, after = super().train_with_gain(task, target=target)
            return (before, float("nan")) if self.meter.cost(1.0).batches > 30 else (before, after)

    with pytest.raises(SidequestError, match=r"exp3s: the loss of .* is not finite at step \d+"):
        run(exp3s(steps=200), Diverging(bandit().environment))


def test_the_online_model_is_the_result_once_the_run_is_whole():
    method = exp3s(steps=40, round_steps=10)
    state = method.start(pool_of(bandit()), np.random.default_rng(0))
    learner = bandit()
    seen = []
    for call in range(4):
        state = method.round(state, learner, np.random.default_rng(call))
        seen.append(method.improved(state))
    assert seen == [False, False, False, True]
    assert not exp3s(steps=40, result="recipe").improved(state)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("goal", ["average", "primary"])
class TestBoth:
    def test_same_seed_same_recipe(self, name, goal):
        make = METHODS[name]
        assert run(make(seed=3), goal=goal).to_json() == run(make(seed=3), goal=goal).to_json()
        assert run(make(seed=3), goal=goal).phases != run(make(seed=4), goal=goal).phases

    def test_killed_run_resumes_to_the_same_bytes(self, name, goal, tmp_path):
        whole = run(METHODS[name](), goal=goal, directory=tmp_path / "whole")

        class Killed(Exception):
            pass

        def kill(calls, *_):
            if calls in (5, 12):
                raise Killed

        resumed = None
        for _ in range(3):
            try:
                resumed = run(
                    METHODS[name](), goal=goal, directory=tmp_path / "cut", checkpoint_seconds=0.0, on_round=kill
                )
                break
            except Killed:
                continue
        if resumed is None:
            resumed = run(METHODS[name](), goal=goal, directory=tmp_path / "cut", checkpoint_seconds=0.0)
        assert resumed.to_json() == whole.to_json()
        for path in (tmp_path / "whole" / "logs").iterdir():
            assert path.read_bytes() == (tmp_path / "cut" / "logs" / path.name).read_bytes()

    def test_state_survives_json(self, name, goal):
        method, learner = METHODS[name](), bandit()
        state = method.start(pool_of(learner, goal), np.random.default_rng(0))
        state = method.round(state, learner, np.random.default_rng(1))
        again = method.State.model_validate_json(state.model_dump_json())
        assert again == state


@pytest.mark.integration
@pytest.mark.parametrize("goal", ["average", "primary"])
@pytest.mark.parametrize("name", METHODS)
def test_runs_on_a_torch_learner_and_its_recipe_trains(name, goal):
    suite = tiny_suite()
    learner = tiny_learner(suite)
    trials = LocalTrials(learner, learner.settings, goal=goal)
    recipe = run_method(METHODS[name](steps=60), learner, pool_of(learner, goal), trials, single_run_work=15)
    assert set(recipe.tasks) == set(suite.tasks)
    fresh = tiny_learner(suite, seed=1)
    found = fit(fresh, recipe.phases, TrainSettings(batch_size=16, epochs=20), 0, goal=goal)
    assert found.score > 0.6
