"""The baselines: their shares by formula, and what a learner that follows them is trained on."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from sidequest.errors import SettingsError
from sidequest.learning.fit import fit
from sidequest.methods import METHODS, get_method
from sidequest.methods.base import Method, Pool
from sidequest.settings import TrainSettings, parse
from sidequest.simulation.learner import SimulatedLearner, Simulation, simulated_card

ROWS = {"primary": 320, "large": 3200, "middle": 960, "small": 64}


def pool(rows=ROWS) -> Pool:
    return Pool("primary", {name: simulated_card(name, count) for name, count in rows.items()})


def phase(name, *, seed=0, rows=ROWS, **settings):
    cls = get_method(name)
    method = cls(parse(cls.Settings, settings, name), seed=seed)
    state = method.start(pool(rows), np.random.default_rng([seed, 0]))
    assert method.done(state)
    (only,) = method.recipe(state).phases
    return only


def trained_on(phase, epochs, seed=0):
    """Batches and examples per task when a recipe of this phase is trained."""
    names = list(ROWS)
    cards = tuple(simulated_card(name, ROWS[name]) for name in names)
    learner = SimulatedLearner(Simulation(cards, np.eye(len(names)), np.ones(len(names))))
    fit(learner, [phase], TrainSettings(epochs=epochs, patience=None), seed)
    return {name: (learner.meter.of(name).batches, learner.meter.of(name).examples) for name in names}


def test_every_listed_method_has_its_name_and_a_description():
    for name in METHODS:
        cls = get_method(name)
        assert issubclass(cls, Method)
        assert cls.name == name
        assert cls.summary
    with pytest.raises(SettingsError, match="Did you mean 'uniform'"):
        get_method("unifrom")


def test_single_is_the_primary_alone():
    assert phase("single").shares == {"primary": 1}
    assert trained_on(phase("single"), 3) == {"primary": (30, 960), "large": (0, 0), "middle": (0, 0), "small": (0, 0)}


def test_all_sees_every_row_once_per_epoch_of_the_primary():
    found = trained_on(phase("all"), 4)
    for name, rows in ROWS.items():
        assert found[name][1] == pytest.approx(4 * rows, abs=4 * 32)


def test_shares_follow_their_formulas():
    assert phase("uniform").shares == dict.fromkeys(sorted(ROWS), 1.0)
    assert phase("size").shares == ROWS
    shares = phase("temperature", temperature=3.0).shares
    assert shares == pytest.approx({name: rows ** (1 / 3) for name, rows in ROWS.items()})
    assert phase("temperature", temperature=1.0).shares == pytest.approx(phase("size").shares)
    nearly_uniform = phase("temperature", temperature=1e6).shares
    assert nearly_uniform == pytest.approx(phase("uniform").shares, rel=1e-4)
    for name in ("uniform", "size", "temperature"):
        assert phase(name).order == "sample"


# A chi-squared test at p = 1e-4 with a fixed seed: one false alarm in 10,000 changes of the random stream.
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["uniform", "size", "temperature"])
def test_batches_are_drawn_in_proportion_to_the_shares(name):
    chosen = phase(name)
    counts = {task: batches for task, (batches, _) in trained_on(chosen, 40).items()}
    expected = np.array([chosen.shares[task] for task in counts])
    expected *= sum(counts.values()) / expected.sum()
    assert stats.chisquare(list(counts.values()), expected).pvalue > 1e-4


@pytest.mark.statistical
def test_random_subsets_are_uniform_in_size_and_members():
    sets = [tuple(sorted(set(phase("random-subset", seed=seed).tasks) - {"primary"})) for seed in range(1200)]
    sizes = Counter(len(chosen) for chosen in sets)
    assert stats.chisquare([sizes[1], sizes[2], sizes[3]]).pvalue > 1e-4
    for size in (1, 2):
        members = Counter(chosen for chosen in sets if len(chosen) == size)
        assert len(members) == 3
        assert stats.chisquare(list(members.values())).pvalue > 1e-4


def test_random_subset_has_the_size_asked_for_and_at_most_all():
    assert {len(phase("random-subset", seed=seed, size=2).tasks) for seed in range(20)} == {3}
    assert len(phase("random-subset", size=9).tasks) == 4
    assert phase("random-subset", rows={"primary": 10}).tasks == ("primary",)
    with pytest.raises(SettingsError, match=r"size: .*found 0"):
        phase("random-subset", size=0)
