"""AutoSeM as a method: the contract, the two stages, and what it finds on simulated learners."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from sidequest.errors import SettingsError
from sidequest.learning.fit import single_run_work
from sidequest.methods import get_method
from sidequest.methods.autosem import stage1, stage2
from sidequest.numerics import beta_bernoulli as bb
from sidequest.recipe import Phase
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings, parse
from sidequest.simulation.learner import SimulatedLearner, helpful
from sidequest.testing import check_method
from sidequest.testing.any_order import trials_in_any_order
from tests.helpers.marks import slow_but

STAGE1 = {"rounds": 12, "batches": 2}
STAGE2 = {"trials": 5, "initial": 3}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("autosem-p1", STAGE1),
        pytest.param("autosem-p1", {**STAGE1, "rule": "credible", "utility": "decayed"}, marks=pytest.mark.slow),
        ("autosem", {**STAGE1, **STAGE2}),
        pytest.param(
            "autosem", {**STAGE1, **STAGE2, "rule": "mean", "runs": 2, "matern": "3/2"}, marks=pytest.mark.slow
        ),
        ("autosem-no-stage1", STAGE2),
        ("autosem-grid", {**STAGE1, "trials": 7}),
    ],
)
def test_the_contract(name, settings):
    check_method(name, settings=settings, fresh_process=name == "autosem")


class Recorder:
    """Passes calls on to a learner and writes them down."""

    def __init__(self, learner):
        self._learner, self.calls = learner, []

    def __getattr__(self, name):
        value = getattr(self._learner, name)
        if not callable(value):
            return value

        def called(*arguments, **named):
            found = value(*arguments, **named)
            self.calls.append((name, arguments, found))
            return found

        return called


def play(settings, *, simulation=None, seed=0):
    learner = Recorder(SimulatedLearner(simulation or helpful(), seed=seed))
    state = stage1.start(learner._learner.pool(), settings)
    for number in range(settings.rounds):
        state = stage1.play(state, learner, np.random.default_rng([seed, number + 1]), settings)
    return state, learner.calls


def test_a_round_trains_the_pulled_arm_and_compares_with_the_round_before():
    settings = stage1.BanditSettings(rounds=30, batches=3, gamma=0.1)
    state, calls = play(settings)
    assert calls[0][:2] == ("begin", (None,))  # a constant rate: no round counts less than another
    assert play(stage1.BanditSettings(rounds=30, batches=3, learning_rate=None))[1][0][:2] == ("begin", (90,))
    assert calls[1][:2] == ("evaluate", ("primary",))  # R_0, before any training
    trained = [arguments for name, arguments, _ in calls if name == "train"]
    assert trained == [(state.arms[arm], 3) for arm in state.pulled]
    seen = [found for name, _, found in calls if name == "evaluate"]
    assert seen == state.scores
    assert len(seen) == 31
    assert state.rewards == [int(now >= before) for before, now in itertools.pairwise(seen)]


def test_the_posterior_is_the_decayed_one_and_the_primary_starts_stronger():
    settings = stage1.BanditSettings(rounds=25, batches=2, gamma=0.2, primary_prior=(4, 2))
    state, _ = play(settings)
    alpha, beta = np.array([4.0, *[1] * 8]), np.array([2.0, *[1] * 8])
    for arm, reward in zip(state.pulled, state.rewards, strict=True):
        alpha, beta = bb.update(alpha, beta, arm, reward, gamma=0.2)
    assert (state.alpha, state.beta) == (alpha.tolist(), beta.tolist())


def test_selection_counts_all_rounds_alike_or_by_the_decayed_posterior():
    state = stage1.BanditState(
        arms=["p", "a", "b"], goal="primary", alpha=[1, 1, 2], beta=[1, 3, 1], pulled=[1, 1, 1, 2], rewards=[1, 1, 0, 1]
    )
    all_rounds = stage1.utility_posterior(state, stage1.BanditSettings())
    assert [part.tolist() for part in all_rounds] == [[1, 3, 2], [1, 2, 1]]
    decayed = stage1.utility_posterior(state, stage1.BanditSettings(utility="decayed"))
    assert [part.tolist() for part in decayed] == [[1, 1, 2], [1, 3, 1]]


UTILITIES = {"p": (9, 1), "a": (8, 2), "b": (6, 5), "c": (6, 4), "d": (2, 3)}  # means .9 .8 .545 .6 .4


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ({}, ["a", "b", "c"]),
        ({"top": 1, "threshold": 0.58}, ["a", "c"]),
        ({"threshold": 0.9}, ["a", "c"]),
        ({"rule": "top", "top": 3}, ["a", "b", "c"]),
        ({"rule": "top", "top": 9}, ["a", "b", "c", "d"]),
        ({"rule": "mean", "threshold": 0.55}, ["a", "c"]),
        ({"rule": "mean", "threshold": 0.99}, []),
        ({"rule": "credible", "level": 0.9}, ["a"]),  # 5 % quantiles: a .57, c .34
        ({"rule": "credible", "level": 0.999}, []),
    ],
)
def test_selection_rules(settings, chosen):
    state = stage1.BanditState(
        arms=list(UTILITIES),
        goal="primary",
        alpha=[a for a, _ in UTILITIES.values()],
        beta=[b for _, b in UTILITIES.values()],
    )
    assert stage1.select(state, stage1.BanditSettings(utility="decayed", **settings)) == chosen


def run(name, settings, *, simulation=None, seed=0, workers=1, train=None, trials=None, budget=None):
    cls = get_method(name)
    train = train or TrainSettings(epochs=2, patience=None)
    learner = SimulatedLearner(simulation or helpful(2, 3), seed=seed)
    runner = trials or LocalTrials(learner, train)
    return run_method(
        cls(parse(cls.Settings, settings, name), seed=seed),
        learner,
        learner.pool(train),
        runner if workers == 1 else trials_in_any_order(lambda plan: runner.run([plan])[0], workers),
        single_run_work=single_run_work(320, 100, train),
        budget=budget,
    )


class Counting(LocalTrials):
    def run(self, plans):
        self.batches = [*getattr(self, "batches", []), list(plans)]
        return super().run(plans)


def counting(simulation, seed=0):
    return Counting(SimulatedLearner(simulation, seed=seed), TrainSettings(epochs=2, patience=None))


def ratios_of(plan):
    return {name: int(share) for name, share in plan.phases[0].shares.items()}


def test_the_recipe_is_one_cycle_of_whole_ratios_with_all_evidence():
    recipe = run("autosem", {"rounds": 40, "trials": 8, "initial": 4})
    (phase,) = recipe.phases
    assert phase.order == "cycle"
    stage1, stage2 = recipe.evidence["stage1"], recipe.evidence["stage2"]
    assert len(stage1["pulled"]) == len(stage1["rewards"]) == len(stage1["scores"]) - 1 == 40
    assert sum(arm["pulls"] for arm in stage1["posterior"].values()) == 40
    assert recipe.evidence["selected"] == stage2["tasks"]
    best = stage2["trials"][stage2["best"]]
    named = dict(zip(["primary", *stage2["tasks"]], best["mixture"], strict=True))
    assert phase == Phase(shares={name: ratio for name, ratio in named.items() if ratio})
    assert best["expected"] == max(trial["expected"] for trial in stage2["trials"])
    assert [trial["source"] for trial in stage2["trials"][:4]] == ["design"] * 4
    assert all(trial["mean"] is not None for trial in stage2["trials"][4:])
    assert len(stage2["process"]["lengths"]) == len(stage2["tasks"])
    assert recipe.verdict
    json.dumps(recipe.evidence)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("name", ["autosem-no-stage1", "autosem-grid"])
def test_no_mixture_is_paid_for_twice_whatever_runs_at_once(name, workers):
    simulation = helpful(2, 3)
    trials = counting(simulation)
    settings = {"trials": 13} | ({"rounds": 3, "top": 3} if name == "autosem-grid" else {})
    run(name, settings, simulation=simulation, workers=workers, trials=trials)
    plans = [ratios_of(plan) for batch in trials.batches for plan in batch]
    as_ratios = {tuple(sorted((task, ratio / plan["primary"]) for task, ratio in plan.items())) for plan in plans}
    assert len(as_ratios) == len(plans) == (13 if name == "autosem-no-stage1" else 12)  # the grid is 3 x 2 x 2


@pytest.mark.parametrize("pending", [1, 3])
def test_workers_and_the_order_of_arrival_decide_nothing(pending):
    settings = {"trials": 14, "initial": 4, "pending": pending}
    one = run("autosem-no-stage1", settings)
    for workers in (2, 4, 16):
        assert run("autosem-no-stage1", settings, workers=workers).to_json() == one.to_json()


def test_what_may_be_pending_is_a_setting_that_decides():
    found = [run("autosem-no-stage1", {"trials": 14, "initial": 4, "pending": pending}) for pending in (1, 3)]
    mixtures = [[trial["mixture"] for trial in one.evidence["stage2"]["trials"]] for one in found]
    assert mixtures[0][:5] == mixtures[1][:5]  # the design, and the first mixture after it
    assert mixtures[0] != mixtures[1]


def test_mixtures_after_the_design_run_at_once_as_far_as_pending_lets_them():
    most = {}
    for pending in (1, 3):
        cls, learner = get_method("autosem-no-stage1"), SimulatedLearner(helpful(2, 3))
        method = cls(parse(cls.Settings, {"trials": 10, "initial": 4, "pending": pending}, "x"))
        state = method.start(learner.pool(), np.random.default_rng(0))
        for _ in range(6):
            state = method.tell(state, method.ask(state, 1)[0], 0.5)
        most[pending] = len(method.ask(state, 16))
    assert most == {1: 1, 3: 3}


def test_the_first_trial_is_the_primary_alone_as_single_trains_it():
    trials = counting(helpful(2, 3))
    run("autosem-no-stage1", {"trials": 3}, trials=trials)
    single = get_method("single")()
    learner = SimulatedLearner(helpful(2, 3))
    phase = single.recipe(single.start(learner.pool(), np.random.default_rng(0))).phases[0]
    first = trials.batches[0][0]
    assert first.phases == (phase,)  # so the trial is found in the cache when `single` was trained with this seed
    assert first.seed == 0


def test_several_runs_per_mixture_count_by_their_mean():
    simulation = helpful(2, 2)
    trials = counting(simulation)
    recipe = run("autosem-no-stage1", {"trials": 5, "initial": 3, "runs": 3}, simulation=simulation, trials=trials)
    plans = [plan for batch in trials.batches for plan in batch]
    assert len(plans) == 15
    for start in range(0, 15, 3):
        assert len({plan.seed for plan in plans[start : start + 3]}) == 3
        assert len({json.dumps(ratios_of(plan), sort_keys=True) for plan in plans[start : start + 3]}) == 1
    for trial in recipe.evidence["stage2"]["trials"]:
        assert len(trial["scores"]) == 3
        assert trial["score"] == pytest.approx(np.mean(trial["scores"]))
    together = run("autosem-no-stage1", {"trials": 5, "initial": 3, "runs": 3}, simulation=simulation, workers=3)
    assert together.to_json() == recipe.to_json()


def test_given_tasks_need_no_stage_1():
    recipe = run("autosem", {"tasks": "arm-3, arm-1", "trials": 5})
    assert recipe.evidence["selected"] == ["arm-1", "arm-3"]
    assert "stage1" not in recipe.evidence
    assert run("autosem-no-stage1", {"trials": 5}).evidence["selected"] == ["arm-1", "arm-2", "arm-3"]


@pytest.mark.parametrize(
    ("tasks", "message"),
    [("arm-2,amr-1", "'amr-1'. Did you mean 'arm-1'"), ("primary", "'primary' is the primary; name auxiliaries only")],
)
def test_given_tasks_that_do_not_exist(tasks, message):
    with pytest.raises(SettingsError, match=message):
        run("autosem-grid", {"tasks": tasks})


def test_bad_settings_are_refused():
    for settings, message in [
        ({"prior": [0, 1]}, "above 0"),
        ({"primary_prior": "3,nan"}, "finite"),
        ({"learning_rate": 0}, "greater than 0"),
        ({"rule": "best"}, "'best'"),
        ({"trials": 0}, "greater than or equal to 1"),
        ({"tasks": []}, "at least 1"),
    ]:
        with pytest.raises(SettingsError, match=message):
            parse(get_method("autosem").Settings, settings, "autosem")


def test_settings_as_a_user_types_them_and_as_published():
    settings = parse(get_method("autosem").Settings, {"primary_prior": "3,1", "as_published": True, "gamma": 0.2}, "x")
    assert settings.primary_prior == (3, 1)
    assert (settings.utility, settings.initial, settings.design, settings.choose) == ("decayed", 10, "random", "score")
    assert settings.gamma == 0.2  # what is given wins
    assert parse(get_method("autosem").Settings, {}, "x").design == "spread"


def test_as_published_begins_with_random_mixtures_and_returns_the_highest_score():
    recipe = run("autosem-no-stage1", {"trials": 12, "as_published": True})
    trials = recipe.evidence["stage2"]["trials"]
    assert [trial["source"] for trial in trials[:10]] == ["design"] * 10
    assert recipe.evidence["stage2"]["best"] == int(np.argmax([trial["score"] for trial in trials]))


@pytest.mark.parametrize("budget", [1, 3, 6])
def test_a_budget_that_ends_between_two_runs_of_a_mixture(budget):
    trials = counting(helpful(2, 2))
    settings = {"trials": 6, "initial": 3, "runs": 2}
    recipe = run("autosem-no-stage1", settings, simulation=helpful(2, 2), trials=trials, budget=budget)
    assert recipe.provenance["stopped_by_budget"] == budget
    known = recipe.evidence["stage2"]["trials"]
    assert len({len(trial["scores"]) for trial in known}) == 1  # a mixture with fewer runs decides nothing
    best = known[recipe.evidence["stage2"]["best"]]
    assert recipe.phases[0].shares == {
        name: ratio
        for name, ratio in zip(["primary", *recipe.evidence["stage2"]["tasks"]], best["mixture"], strict=True)
        if ratio
    }


def test_many_ties_are_a_warning():
    quiet = stage1.BanditState(
        arms=["p", "a"], goal="primary", alpha=[1, 1], beta=[1, 1], scores=[0.5, 0.5, 0.5, 0.5, 0.6]
    )
    moving = quiet.model_copy(update={"scores": [0.5, 0.5, 0.6, 0.7, 0.6]})
    assert "75% of the rounds" in stage1.ties_note(quiet)
    assert stage1.ties_note(moving) == ""


def test_nothing_selected_is_the_primary_alone_without_trials():
    recipe = run("autosem", {"rounds": 5, "rule": "mean", "threshold": 1.0})
    assert recipe.phases == (Phase(shares={"primary": 1}),)
    assert recipe.cost.trials == 0


def test_no_auxiliary_helps_is_a_verdict():
    recipe = run("autosem-no-stage1", {"trials": 12}, simulation=helpful(0, 2, noise=0.002))
    assert recipe.auxiliaries == ()
    assert recipe.verdict.startswith("no auxiliary helps")


def test_the_average_goal_rewards_the_mean_over_tasks():
    learner = Recorder(SimulatedLearner(helpful(1, 2)))
    pool = learner._learner.pool()
    settings = stage1.BanditSettings(rounds=1)
    state = stage1.start(type(pool)(pool.primary, pool.cards, "average"), settings)
    state = stage1.play(state, learner, np.random.default_rng(0), settings)
    seen = [found for name, _, found in learner.calls if name == "evaluate"]
    assert state.scores == pytest.approx([np.mean(seen[:3]), np.mean(seen[3:])])


def test_a_diverged_training_counts_as_the_lowest_score():
    class Diverging(LocalTrials):
        def run(self, plans):
            results = super().run(plans)
            return [
                replace(found, score=-np.inf) if len(p.phases[0].shares) > 2 else found
                for p, found in zip(plans, results, strict=True)
            ]

    simulation = helpful(2, 2)
    trials = Diverging(SimulatedLearner(simulation), TrainSettings(epochs=2, patience=None))
    recipe = run("autosem-no-stage1", {"trials": 9}, simulation=simulation, trials=trials)
    assert len(recipe.auxiliaries) < 2
    tried = recipe.evidence["stage2"]["trials"]
    assert any(trial["score"] == -np.inf for trial in tried)
    assert all(np.isfinite(trial["expected"]) for trial in tried)


def test_a_phase_leaves_out_tasks_with_ratio_0():
    assert stage2.phase_of("p", ["a", "b"], (9, 0, 4)).shares == {"p": 9, "b": 4}


def played(simulation, seeds):
    return [play(stage1.BanditSettings(), simulation=simulation, seed=seed)[0] for seed in range(seeds)]


@pytest.mark.statistical
@pytest.mark.parametrize(("seeds", "least"), [(12, 10), pytest.param(50, 45, marks=pytest.mark.slow)])
def test_both_helpful_arms_of_eight_are_chosen(seeds, least):
    """Default settings, fixed seeds. A method that hits with the 0.96 of docs/log would fail in 1 of 100 draws, at 12 as at 50
    seeds; one that hits with probability 0.8 would pass in 56 of 100 draws at 12 and in 5 at 50."""
    settings = stage1.BanditSettings()
    hits = sum({"arm-1", "arm-2"} <= set(stage1.select(state, settings)) for state in played(helpful(2, 8), seeds))
    assert hits >= least


@pytest.mark.statistical
@pytest.mark.parametrize("harm", slow_but((0.25, 0.0), 0.25))
def test_how_many_arms_are_chosen_when_none_helps(harm, capsys):
    """Documented, not wished: the paper's rule always takes two, a credible bound almost none."""
    states = played(helpful(0, 8, harm=harm), 10)
    found = {
        rule: [len(stage1.select(state, stage1.BanditSettings(rule=rule))) for state in states]
        for rule in ("top-plus", "credible")
    }
    with capsys.disabled():
        print(
            f"\nno arm helps (harm {harm}): of 8 selected " + str({k: float(np.mean(v)) for k, v in found.items()}),
            end="",
        )
    assert min(found["top-plus"]) >= 2
    assert np.mean(found["credible"]) <= 0.5
