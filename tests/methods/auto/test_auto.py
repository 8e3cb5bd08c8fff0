"""`auto` on simulated learners whose answer is known."""

import numpy as np
import pytest

from sidequest.learning.fit import single_run_work
from sidequest.methods.auto.arms import Arm, first_arms
from sidequest.methods.auto.auto import Auto, AutoSettings
from sidequest.methods.auto.decision import Spread, judge, spread_of, survivors
from sidequest.methods.auto.rounds import AutoState
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings
from sidequest.simulation.learner import SimulatedLearner, helpful
from sidequest.testing import check_method

TRAIN = TrainSettings(epochs=10, patience=None)


def chosen(simulation, seed, budget=None, learner_class=SimulatedLearner, **settings):
    learner = learner_class(simulation, seed=seed)
    card = simulation.cards[0]
    return run_method(
        Auto(AutoSettings(**settings), seed=seed),
        learner,
        learner.pool(TRAIN),
        LocalTrials(learner, TRAIN),
        single_run_work=single_run_work(card.rows, card.select_rows, TRAIN),
        budget=budget,
    )


@pytest.mark.parametrize("effort", [1, 2, 4])
def test_the_contract(effort):
    check_method(Auto, settings={"effort": effort}, fresh_process=effort == 2)


@pytest.mark.statistical
def test_both_helpers_of_eight_are_found_at_about_three_x():
    """20 seeds; each finds both helpers with probability above 0.95 in 200 runs, so 17 of 20 fails once in 10,000."""
    recipes = [chosen(helpful(2, 8, gain=0.15, harm=0.1), seed) for seed in range(20)]
    assert sum(set(recipe.auxiliaries) == {"arm-1", "arm-2"} for recipe in recipes) >= 17
    assert np.mean([recipe.cost.x for recipe in recipes]) < 3.5


@pytest.mark.statistical
def test_where_nothing_helps_something_is_chosen_in_at_most_one_run_of_ten():
    """40 seeds; the rate was 0 in 60 other seeds. With a true rate of 3 % more than 4 of 40 fails once in 100."""
    recipes = [chosen(helpful(0, 5, harm=0.0), seed) for seed in range(100, 140)]
    assert sum(bool(recipe.auxiliaries) for recipe in recipes) <= 4
    assert "no auxiliary helps" in next(recipe.verdict for recipe in recipes if not recipe.auxiliaries)


@pytest.mark.statistical
def test_three_helpers_of_twenty_are_found_within_twice_the_cost_for_eight():
    eight = [chosen(helpful(3, 8, gain=0.15, harm=0.1), seed) for seed in range(8)]
    twenty = [chosen(helpful(3, 20, gain=0.15, harm=0.1), seed) for seed in range(8)]
    assert sum(set(recipe.auxiliaries) == {"arm-1", "arm-2", "arm-3"} for recipe in twenty) >= 6
    assert np.mean([r.cost.x for r in twenty]) < 2 * np.mean([r.cost.x for r in eight])


def test_fifty_candidates_are_ordered_by_their_labels_and_then_screened_by_training():
    recipe = chosen(helpful(2, 50, gain=0.3, harm=0.1), 0)
    assert set(recipe.auxiliaries) == {"arm-1", "arm-2"}
    assert len(recipe.evidence["related"]) == 50
    screen, first, *_ = recipe.evidence["rounds"]
    assert (screen["stage"], first["stage"]) == ("screen", "probe")
    tried = [{name for arm in one["arms"] for name in arm["tasks"]} for one in (screen, first)]
    assert len(tried[0]) == 16
    assert len(tried[1]) == 8
    assert recipe.cost.x < 2 * chosen(helpful(2, 8, gain=0.3, harm=0.1), 0).cost.x


def test_a_screen_by_labels_never_decides_alone():
    """What cannot be said keeps its place, and one of the last is looked at."""
    method = Auto(seed=3)
    names = [f"t{i:02}" for i in range(20)]
    related = {name: float(i) for i, name in enumerate(names)} | {"t00": float("nan")}
    state = AutoState(primary="p", candidates=names, objectives={}, epochs=1.0, related=related)
    kept = method._related(state)
    assert len(kept) == 16
    assert {"t00", *names[6:]} <= {*kept}
    assert len({*kept} & {*names[1:6]}) == 1


def test_stopped_anywhere_it_answers_by_the_rounds_that_are_complete():
    simulation = helpful(1, 4, gain=0.3, harm=0.1)
    nothing = chosen(simulation, 0, budget=0.2)
    assert nothing.auxiliaries == ()
    assert nothing.verdict.startswith("stopped before")
    some = chosen(simulation, 0, budget=2.0)
    assert some.auxiliaries == ("arm-1",)
    assert some.cost.x < chosen(simulation, 0).cost.x


def test_results_in_any_order_give_the_same_answer():
    learner = SimulatedLearner(helpful(2, 5), seed=1)
    trials = LocalTrials(learner, TRAIN)

    def run(order):
        method = Auto(seed=1)
        state = method.start(learner.pool(TRAIN), np.random.default_rng(0))
        while not method.done(state):
            plans = method.ask(state, 4)
            for index in order(len(plans)):
                result = trials.run([plans[index]])[0]
                state = method.tell_rows(state, plans[index], result.score, result.truth)
        return method.recipe(state).to_json()

    assert run(range) == run(lambda n: reversed(range(n)))


def test_a_guard_at_full_length_gives_a_tie_to_the_primary_alone():
    """The simulated primary keeps learning from itself: alone for as many batches it is better, and the guard sees it."""
    simulation = helpful(1, 3, gain=0.1, harm=0.1, primary_gain=0.4)
    assert chosen(simulation, 0, effort=2).auxiliaries == ("arm-1",)
    guarded = chosen(simulation, 0, effort=3)
    assert guarded.auxiliaries == ()
    assert guarded.evidence["rounds"][-1]["stage"] == "guard"
    assert "does not hold" in guarded.verdict


def test_a_read_out_that_is_as_good_ends_the_choice_and_a_model_without_one_is_guarded_by_the_others():
    class WithReadOut(SimulatedLearner):
        level = 0.99

        def read_out_truth(self, task):
            return np.full(100, self.level)

    class WithPoorReadOut(WithReadOut):
        level = 0.01

    simulation = helpful(1, 3, gain=0.5, harm=0.1)
    assert chosen(simulation, 0, effort=3).auxiliaries == ("arm-1",)
    assert chosen(simulation, 0, effort=3, learner_class=WithPoorReadOut).auxiliaries == ("arm-1",)
    beaten = chosen(simulation, 0, effort=3, learner_class=WithReadOut)
    assert beaten.auxiliaries == ()
    assert "the read-out of the features" in beaten.verdict


def test_the_judgement_is_the_paired_difference_from_the_mean_of_the_controls():
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=50)
    truth = {"a": [rows + 0.2], "c1": [rows], "c2": [rows + 0.1]}
    judged = judge(truth, ["c1", "c2"])
    assert judged["a"].gain == pytest.approx(0.15)
    assert judged["a"].above
    between = np.var([rows.mean(), rows.mean() + 0.1], ddof=1)
    assert judged["a"].error == pytest.approx(np.sqrt(between * 1.5))
    ones = np.ones(3)
    spread = spread_of({"c1": [ones, 2 * ones], "c2": [3 * ones, 2 * ones]}, ["c1", "c2"])
    assert spread.variance == pytest.approx(np.mean([2.0, 0.0]))
    assert (spread + Spread(0.0, 2)).variance == pytest.approx(spread.variance / 2)
    sure = judge(truth, ["c1", "c2"], Spread(0.0, 9))
    assert sure["a"].error == pytest.approx(np.sqrt(between / 10 * 1.5))
    assert not judge({"a": [rows], "c1": [rows], "c2": [rows + 0.1]}, ["c1", "c2"])["a"].above


def test_survivors_stand_out_and_are_near_the_best():
    judged = judge(
        {name: [np.full(9, value)] for name, value in {"a": 0.9, "b": 0.8, "d": 0.55, "c1": 0.5, "c2": 0.51}.items()},
        ["c1", "c2"],
    )
    tried = {name: judged[name] for name in "abd"}
    assert survivors(tried, keep=0.7, least_z=0.0, most=3) == ["a", "b"]
    assert survivors(tried, keep=0.0, least_z=0.0, most=3) == ["a", "b", "d"]
    assert survivors(tried, keep=0.0, least_z=0.0, most=1) == ["a"]
    assert survivors(tried, keep=0.0, least_z=1e9, most=3) == []


def test_the_cost_is_within_the_effort_also_where_batches_are_short_and_looks_are_dear():
    """100 rows in batches of 32: the primary's last batch is short, an auxiliary's are not."""
    simulation = helpful(1, 4, gain=0.3, harm=0.1, rows=100)
    costs = [chosen(simulation, seed).cost.x for seed in range(4)]
    assert max(costs) < 3.15
    assert min(costs) > 2.0


def test_controls_are_of_every_objective_first():
    arms = first_arms(["a", "b", "c"], {"a": "tagging", "b": "classification", "c": "classification"}, 2, seed=0)
    assert [arm.tasks[0] for arm in arms if arm.kind == "permuted"] == ["b", "a"]


def test_an_arm_costs_its_batches_and_its_recipe_leaves_the_length_to_the_trainer():
    arm = Arm(kind="set", tasks=("a", "b"), primary_share=2, share=1, finish=0.5)
    assert arm.cost(1.0) == pytest.approx(1 + 0.5 * 2 / 2)
    together, alone = arm.phases("p", epochs=10)
    assert (together.epochs, alone.epochs) == (5, 5)
    assert together.shares == {"p": 2, "a": 1, "b": 1}
    assert Arm(kind="candidate", tasks=("a",)).phases("p", 10, whole=True)[0].epochs is None
