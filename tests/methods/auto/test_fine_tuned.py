"""`auto` with a fine-tuned model: short runs are no proof, so a guard at full length decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sidequest.methods.auto.auto import Auto, AutoSettings
from sidequest.methods.auto.rounds import ALONE, AutoState, Round
from sidequest.methods.auto.stages import beside
from sidequest.methods.auto.words import verdict
from sidequest.simulation.learner import SimulatedLearner, helpful
from tests.methods.auto.test_auto import TRAIN, chosen


class SoonerNotBetter(SimulatedLearner):
    """A fine-tuned encoder: batches of any other task are worth half a batch of the primary's own, until it has learned all that
    there is; at the primary's full length it has, alone or beside others."""

    def _skill(self, task):
        own = self._at.exposures.get(self.primary, 0.0)
        others = sum(seen for name, seen in self._at.exposures.items() if name != self.primary)
        full = TRAIN.epochs * self.epoch_batches(self.primary)
        return float(np.log1p(min(own + 0.5 * others, 0.7 * full) / self.simulation.tau))


@pytest.mark.statistical
def test_where_candidates_make_a_fine_tuned_model_learn_sooner_but_not_better_nothing_is_chosen():
    """30 seeds; with a true rate of 5 % more than 5 of 30 fails once in 300. In short runs every candidate looks good."""
    simulation = helpful(3, 3, gain=0.1)
    short = [chosen(simulation, seed, learner_class=SoonerNotBetter) for seed in range(6)]
    assert all(recipe.auxiliaries for recipe in short)
    recipes = [chosen(simulation, seed, learner_class=SoonerNotBetter, fine_tunes=True) for seed in range(30)]
    assert sum(bool(recipe.auxiliaries) for recipe in recipes) <= 5
    assert {recipe.evidence["rounds"][-1]["stage"] for recipe in recipes} == {"guard"}
    assert np.mean([recipe.cost.x for recipe in recipes]) < 6.3


def test_what_helps_a_fine_tuned_model_to_the_end_is_chosen_and_short_runs_alone_come_with_a_warning():
    simulation = helpful(2, 4, gain=0.3, harm=0.1)
    recipes = [chosen(simulation, seed, fine_tunes=True) for seed in range(4)]
    assert {recipe.auxiliaries for recipe in recipes} == {("arm-1", "arm-2")}
    assert all("this holds against" in recipe.verdict for recipe in recipes)
    assert {recipe.evidence["effort"] for recipe in recipes} == {3}
    assert chosen(simulation, 0).evidence["effort"] == 2
    short = chosen(simulation, 0, fine_tunes=True, effort=2)
    assert short.verdict.endswith(
        "With a fine-tuned model that is no proof: in short runs whatever adds steps looks good"
    )
    assert "fine-tuned" not in chosen(simulation, 0, effort=2).verdict


@pytest.mark.parametrize(("rows", "select"), [(400, 100), (100, 1000)])
@pytest.mark.parametrize("effort", [3, 4])
def test_the_guard_of_a_fine_tuned_model_has_the_full_length_and_leaves_out_what_gained_least(rows, select, effort):
    """Also where a look at *select* is as dear as a training."""
    simulation = helpful(3, 4, gain=0.3, harm=0.1, rows=rows)
    primary, *others = simulation.cards
    simulation = replace(simulation, cards=(replace(primary, select_rows=select), *others))
    recipe = chosen(simulation, 0, fine_tunes=True, effort=effort)
    guard = recipe.evidence["rounds"][-1]
    assert (guard["stage"], guard["length"] >= 0.95) == ("guard", True)
    looks = [one for one in recipe.evidence["rounds"] if one["stage"] in ("probe", "confirm")]
    gained = {arm["arm"]: arm["gain"] for arm in looks[-1]["arms"] if arm["kind"] == "candidate"}
    held = set(recipe.auxiliaries)
    assert held
    others = {name for name, gain in gained.items() if gain > 0} - held
    assert all(gained[name] < min(gained[each] for each in held) for name in others)
    if others:
        assert "the budget had no room to hold" in recipe.verdict
    usual = chosen(simulation, 0, effort=3).evidence["rounds"][-1]["length"]
    assert rows == 100 or usual < 0.95  # the control: half as long is long enough where short runs can be believed


def test_more_budget_is_no_smaller_choice():
    """At effort 4 a share of 1:3 had been kept and a helper dropped for it."""
    simulation = helpful(3, 5, gain=0.3, harm=0.1)
    sizes = [len(chosen(simulation, 0, fine_tunes=True, effort=effort).auxiliaries) for effort in (3, 4, 5)]
    assert sizes == sorted(sizes)


def guarded(choice_above, least, doubt=0.1):
    """The state after a guard in which the choice is above the primary alone by so many nats, on noisy rows."""
    rows = np.random.default_rng(0).normal(size=100)
    noise = 0.1 * np.random.default_rng(1).normal(size=100)
    choice, name = beside(["a"]), "a"
    probe = Round(
        stage="probe",
        arms=[ALONE, choice],
        length=0.3,
        seeds=[0],
        truth={ALONE.name: {0: [0.0] * 4}, name: {0: [1.0] * 4}},
    )
    truth = {ALONE.name: {1: rows.tolist()}, name: {1: (rows + noise - noise.mean() + choice_above).tolist()}}
    guard = Round(stage="guard", arms=[choice, ALONE], length=1.0, seeds=[1], truth=truth)
    state = AutoState(
        primary="p", candidates=["a"], epochs=1, fine_tunes=least > 0, rounds=[probe, guard], choice=choice
    )
    return Auto(AutoSettings(doubt=doubt), seed=0)._next(state)


def test_a_guard_asks_more_of_a_fine_tuned_model_and_says_why_it_refuses():
    """The error of a run is √3 of that of 100 rows of deviation 0.1: 0.017."""
    assert guarded(0.015, least=0.0).choice is not None
    refused = guarded(0.015, least=1.28)
    assert refused.choice is None
    assert verdict(refused, 1.28).endswith("at full length the primary alone is not worse by more than runs differ")
    assert guarded(0.03, least=1.28).choice is not None
    worse = guarded(-0.03, least=1.28)
    assert worse.choice is None
    assert verdict(worse, 1.28).endswith("at full length the primary alone is as good")
    assert guarded(-0.001, least=1.28, doubt=0.9).choice is None  # whatever doubt is allowed, worse is worse
