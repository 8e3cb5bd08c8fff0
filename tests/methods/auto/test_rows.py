"""Which rows `auto` takes of a candidate that has many, on a simulated learner whose rows are known to help or to hurt."""

import dataclasses

import numpy as np
import pytest

from sidequest.errors import SettingsError
from sidequest.learning.protocol import TaskDiscriminator
from sidequest.methods.auto.arms import Arm
from sidequest.methods.auto.rounds import AutoState
from sidequest.methods.auto.rows import FEWEST_TO_LEARN, PARTS, planned, rows_of, with_many_rows
from sidequest.methods.auto.stages import held, with_rows
from sidequest.simulation.learner import helpful
from sidequest.simulation.similarity import SimulatedRows
from sidequest.testing import check_method
from sidequest.testing.check_method import simulated_learner
from tests.methods.auto.test_auto import chosen


class AlikeRows(SimulatedRows):
    """The control: every row teaches as much as every other, so that runs with some of them differ by noise alone."""

    def train(self, task, n_batches, *, weight=1.0, subset=None):
        if task != self.primary and subset is not None:
            weight *= 1 + 1e-9 * len(subset.ids)  # other rows, other noise
        return super(SimulatedRows, self).train(task, n_batches, weight=weight, subset=subset)


class HarmfulLikeness(SimulatedRows):
    """What looks like the primary's is what hurts."""

    def worth(self, task):
        return 2 - super().worth(task)

    def similarities(self, task, discrimination):
        return -super().similarities(task, discrimination)


class WithoutPower(SimulatedRows):
    def __getitem__(self, power):
        if power is TaskDiscriminator:
            raise SettingsError("this model has no task discriminator")
        return super().__getitem__(power)


def with_sizes(simulation, rows):
    """Each candidate with so many rows; the primary keeps its own."""
    primary, *others = simulation.cards
    return dataclasses.replace(simulation, cards=(primary, *(dataclasses.replace(card, rows=rows) for card in others)))


MANY = with_sizes(helpful(1, 3, gain=0.3, harm=0.1), 4000)


def rows_learner(candidates, seed):
    """The contract trains for two epochs: of 4,000 rows of the primary, to rank 16,000 of a candidate is worth it."""
    simulation = with_sizes(simulated_learner(candidates, seed).simulation, 16_000)
    primary, *others = simulation.cards
    cards = (dataclasses.replace(primary, rows=4000), *others)
    return SimulatedRows(dataclasses.replace(simulation, cards=cards), seed=seed)


def stages(recipe):
    return [one["stage"] for one in recipe.evidence["rounds"]]


def test_the_contract_with_rows():
    """Killed at every step of the ranking, other orders of candidates and of results, two and five workers: the same bytes."""
    recipe = check_method("auto", settings={"effort": 5}, make_learner=rows_learner, fresh_process=False)
    assert stages(recipe)[-3:] == ["rows", "shares", "guard"]
    assert recipe.evidence["rows"]["ranked"]


@pytest.mark.statistical
def test_rows_that_help_are_found_and_where_all_are_alike_all_are_kept():
    """Eight seeds each; 40 others of rows that are alike gave none. Where likeness misleads, all rows are kept, too."""
    found = [chosen(MANY, seed, effort=4, learner_class=SimulatedRows) for seed in range(8)]
    subsets = [recipe.phases[0].subsets for recipe in found]
    assert sum("arm-1" in each for each in subsets) >= 7
    for recipe, each in zip(found, subsets, strict=True):
        if "arm-1" not in each:
            continue
        worth = SimulatedRows(MANY).worth("arm-1")
        assert worth[each["arm-1"].ids].mean() > 2 > worth.mean()
        assert "the best" in recipe.verdict
    alike = [chosen(MANY, seed, effort=4, learner_class=AlikeRows) for seed in range(8)]
    assert [stages(recipe)[2:4] for recipe in alike] == [["rows", "shares"]] * 8
    assert sum(bool(recipe.phases[0].subsets) for recipe in alike) <= 1
    assert all(recipe.auxiliaries == ("arm-1",) for recipe in alike)
    misled = [chosen(MANY, seed, effort=4, learner_class=HarmfulLikeness) for seed in range(8)]
    assert sum(bool(recipe.phases[0].subsets) for recipe in misled) <= 1


def test_the_cost_stays_within_the_effort():
    recipes = [chosen(MANY, seed, effort=4, learner_class=SimulatedRows) for seed in range(3)]
    assert all(stages(recipe)[-3:] == ["rows", "shares", "guard"] for recipe in recipes)
    assert max(recipe.cost.x for recipe in recipes) < 1.1 * 12


class WithoutLikeness(SimulatedRows):
    def similarities(self, task, discrimination):
        return np.full(len(self.rows_to_rank(task, discrimination)), np.nan, dtype=np.float32)


@pytest.mark.parametrize(
    ("learner", "effort", "said"),
    [(WithoutLikeness, 4, "no row has a score that is a finite number"), (SimulatedRows, 4, None)],
)
def test_a_ranking_that_says_nothing_leaves_all_rows(learner, effort, said):
    recipe = chosen(MANY, 0, effort=effort, learner_class=learner)
    assert (said is None) == ("rows" in stages(recipe))
    assert (said is None) == bool(recipe.phases[0].subsets)
    assert said is None or recipe.evidence["rows"]["left_out"].endswith(said)


def test_rows_that_cost_too_much_are_not_looked_at():
    recipe = chosen(with_sizes(MANY, 50_000), 0, effort=4, learner_class=SimulatedRows)
    assert stages(recipe) == ["probe", "confirm", "shares", "guard"]
    assert recipe.evidence["rows"]["left_out"].endswith("it costs more than the budget has left for it")
    assert recipe.cost.x < 12


def test_without_the_power_the_stage_is_left_out_with_a_sentence():
    recipe = chosen(MANY, 0, effort=4, learner_class=WithoutPower)
    assert stages(recipe) == ["probe", "confirm", "shares", "guard"]
    assert recipe.evidence["rows"]["left_out"] == "which rows: not looked at; this model has no task discriminator"
    assert recipe.auxiliaries == ("arm-1",)


@pytest.mark.parametrize(("effort", "rows"), [(3, 4000), (4, 1000)])
def test_rows_are_not_in_question_at_low_effort_or_where_there_are_few(effort, rows):
    recipe = chosen(with_sizes(MANY, rows), 0, effort=effort, learner_class=SimulatedRows)
    assert "rows" not in stages(recipe)
    assert "rows" not in recipe.evidence


def state(**sizes):
    choice = Arm(kind="set", tasks=tuple(sizes))
    return AutoState(primary="p", candidates=[*sizes], epochs=10, rows=300, sizes=sizes, choice=choice)


def test_a_ranking_is_of_what_the_budget_pays_for():
    assert with_many_rows(state(few=1199, many=1200)) == ["many"]
    paid = planned(state(few=600, many=2000), 2.4, seed=3)
    assert paid.discrimination.rows == int((0.4 * 2.4 * 3000 - 2000 / 3) / 15)
    assert paid.rows == {"many": 2000 - paid.discrimination.rows}
    rich = planned(state(few=600, many=2000), 100.0, seed=3)
    assert rich.discrimination.rows == 500
    assert planned(state(few=600, many=100_000), 2.4, seed=3) is None  # one look at so many rows costs more
    assert planned(state(few=600, many=100_000), 100.0, seed=3).discrimination.rows >= FEWEST_TO_LEARN


def test_the_guard_gives_a_tie_of_rows_to_all_rows_and_a_tie_with_a_control_to_the_primary_alone():
    whole = Arm(kind="candidate", tasks=("a",))
    part = whole.model_copy(update={"rows": "the best half"})
    assert [arm.rows for arm in with_rows(whole)] == ["all", "the best half", "the best eighth", "all"]

    class Guard:
        def __init__(self, **means):
            self.means = dict(zip((part.name, whole.name, "alone"), means.values(), strict=True))
            self.arms = [part, whole, Arm(kind="single")]

        def rows(self, arm):
            return np.array([[self.means.get(arm.name, self.means["alone"])]])

    assert held(Guard(part=0.3, whole=0.2, alone=0.1), part) == part
    assert held(Guard(part=0.3, whole=0.3, alone=0.1), part) == whole
    assert held(Guard(part=0.1, whole=0.1, alone=0.1), part) is None
    assert held(Guard(part=0.05, whole=0.2, alone=0.1), part) == whole


def test_rows_of_what_a_full_guard_has_no_room_for_are_forgotten():
    """The guard of a fine-tuned model drops auxiliaries; ranked rows of one that was dropped had no share to go with."""
    simulation = with_sizes(helpful(3, 4, gain=0.3, harm=0.1), 4000)
    recipe = chosen(simulation, 0, effort=5, learner_class=SimulatedRows, fine_tunes=True)
    assert "rows" in stages(recipe)
    assert all(set(phase.subsets) <= set(phase.shares) for phase in recipe.phases)
    some = {"a": np.arange(800), "b": np.arange(800)}
    assert {*rows_of(Arm(kind="candidate", tasks=("a",), rows=next(iter(PARTS))), some)} == {"a"}
    assert {*rows_of(Arm(kind="set", tasks=("a", "b"), rows=next(iter(PARTS))), some)} == {"a", "b"}
