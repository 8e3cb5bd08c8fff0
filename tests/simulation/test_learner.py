"""The simulated learner: its best mixture against an optimiser, its formula, its noise."""

import numpy as np
import pytest
from scipy import optimize

from sidequest.errors import RunMismatch, SettingsError
from sidequest.learning.fit import fit
from sidequest.learning.protocol import Learner
from sidequest.recipe import Phase, Subset
from sidequest.settings import TrainSettings
from sidequest.simulation.learner import SimulatedLearner, Simulation, helpful, simulated_card


def random_simulation(seed: int, tasks: int = 5, noise: float = 0.0) -> Simulation:
    rng = np.random.default_rng(seed)
    transfer = rng.normal(0.1, 0.3, (tasks, tasks))
    np.fill_diagonal(transfer, rng.uniform(0.2, 0.6, tasks))
    cards = tuple(simulated_card(f"task-{i}", int(rng.integers(50, 400))) for i in range(tasks))
    return Simulation(cards, transfer, rng.uniform(0.6, 1.0, tasks), tau=float(rng.uniform(5, 40)), noise=noise)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("budget", [3.0, 60.0, 1000.0])
def test_best_mixture_is_the_optimum(seed, budget):
    simulation = random_simulation(seed)
    best = simulation.best_mixture(budget)
    assert best.sum() == pytest.approx(budget)
    assert (best >= 0).all()

    def loss(shares):
        return -simulation.skills(budget * shares)[0]

    found = optimize.minimize(
        loss,
        np.full(5, 0.2),
        bounds=[(0, 1)] * 5,
        constraints=[{"type": "eq", "fun": lambda shares: shares.sum() - 1}],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    theirs = found.x / found.x.sum()  # SLSQP leaves the constraint by up to 1e-8, and gains by it
    assert -loss(best / budget) >= -loss(theirs) - 1e-9
    np.testing.assert_allclose(best / budget, found.x, atol=2e-3)


def test_whole_batches_near_the_best_mixture_beat_all_others():
    simulation = random_simulation(2, tasks=3)
    grid = [(a, b, 24 - a - b) for a in range(25) for b in range(25 - a)]
    scores = [simulation.scores(np.array(e, dtype=float))[0] for e in grid]
    best = np.array(grid[int(np.argmax(scores))])
    assert np.abs(best - simulation.best_mixture(24)).max() < 1.5


def test_scores_follow_the_formula():
    simulation = random_simulation(3)
    learner = SimulatedLearner(simulation)
    learner.train("task-0", 7)
    learner.train("task-3", 4, weight=0.5)
    exposures = np.array([7, 0, 0, 2, 0])
    assert [learner.evaluate(name) for name in learner.tasks] == pytest.approx(list(simulation.scores(exposures)))
    assert learner.train("task-0", 1) == pytest.approx([np.exp(-simulation.skills(exposures)[0])])


def test_batches_end_an_epoch_with_what_is_left():
    simulation = Simulation((simulated_card("primary", 70),), np.array([[0.5]]), np.array([1.0]), batch_size=32)
    learner = SimulatedLearner(simulation)
    assert learner.epoch_batches("primary") == 3
    learner.train("primary", 4)
    assert learner.meter.of("primary").examples == 32 + 32 + 6 + 32
    learner.train("primary", 2, subset=Subset(ids=tuple(range(40))))
    assert learner.meter.of("primary").examples == 102 + 32 + 8


def test_noise_is_normal_and_a_function_of_seed_and_progress():
    simulation = helpful(noise=0.1)
    learners = [SimulatedLearner(simulation, seed=seed) for seed in range(3000)]
    deviations = np.array([learner.evaluate("primary") for learner in learners]) / 0.1
    assert abs(deviations.mean()) < 5 / np.sqrt(3000)
    assert deviations.std() == pytest.approx(1, abs=5 / np.sqrt(2 * 3000))
    learner = learners[0]
    before = learner.evaluate("primary")
    assert before == learner.evaluate("primary")
    learner.train("arm-1", 1)
    assert before != learner.evaluate("primary")


@pytest.mark.parametrize(("n_helpful", "expected"), [(2, {"primary", "arm-1", "arm-2"}), (0, {"primary"})])
def test_helpful_has_the_known_best_set(n_helpful, expected):
    simulation = helpful(n_helpful)
    used = np.flatnonzero(simulation.best_mixture(400) > 0)
    assert {simulation.names[i] for i in used} == expected
    train = TrainSettings(epochs=4)

    def score(*auxiliaries):
        learner = SimulatedLearner(helpful(n_helpful, noise=0.0))
        return fit(learner, [Phase(shares=dict.fromkeys(["primary", *auxiliaries], 1))], train, seed=0).score

    best = score(*(expected - {"primary"}))
    assert best >= max(score(), score("arm-1"), score("arm-1", "arm-3"), score("arm-1", "arm-2", "arm-8"))


def test_it_is_a_learner_and_refuses_another_simulations_state(tmp_path):
    learner = SimulatedLearner(helpful())
    assert isinstance(learner, Learner)
    learner.save(tmp_path)
    with pytest.raises(RunMismatch, match="another simulation"):
        SimulatedLearner(helpful(3)).load(tmp_path)


def test_bad_simulations_are_refused():
    with pytest.raises(SettingsError, match=r"transfer matrix \[1, 1\]"):
        Simulation((simulated_card("a"),), np.zeros((2, 2)), np.ones(1))
    with pytest.raises(SettingsError, match="learn from itself"):
        Simulation((simulated_card("a"),), np.zeros((1, 1)), np.ones(1))
    with pytest.raises(SettingsError, match="between 0 and n_arms"):
        helpful(9, 8)
    with pytest.raises(SettingsError, match="rows 0 to 319"):
        SimulatedLearner(helpful()).train("primary", 1, subset=Subset(ids=(400,)))
    with pytest.raises(SettingsError, match="Did you mean 'arm-1'"):
        helpful().subset(["arm_1"])
