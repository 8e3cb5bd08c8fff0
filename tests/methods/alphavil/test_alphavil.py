"""αVIL: Algorithm 1 step by step on a learner whose loss is known in closed form, and on the real one."""

import numpy as np
import pytest
import torch

from sidequest.learning.fit import fit
from sidequest.learning.protocol import OwnPowers
from sidequest.methods.alphavil.alphavil import AlphaVIL, AlphaVILSettings, _row_batches
from sidequest.methods.base import Pool
from sidequest.recipe import Phase
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials
from sidequest.settings import TrainSettings
from sidequest.tasks.task import Form, Objective, TaskCard
from tests.helpers.marks import slow_but
from tests.helpers.tiny import tiny_learner, tiny_suite


class Plane(OwnPowers):
    """A model that is a point in the plane. Training on a task moves it by a fixed vector times the weight; the primary's loss on
    *select* is half the squared distance to the origin."""

    primary = "primary"
    moves = {"primary": np.array([-0.5, 0.0]), "good": np.array([0.0, -0.4]), "bad": np.array([0.3, 0.3])}
    batches = {"primary": 4, "good": 8, "bad": 40}

    def __init__(self, point=(3.0, 2.0)) -> None:
        self.point = np.array(point)
        self.calls: list = []

    def epoch_batches(self, task, subset=None):
        return self.batches[task]

    def begin_deltas(self, totals):
        self.calls.append(("begin", totals))

    def collect_delta(self, task, n_batches, *, weight=1.0, rate=1.0, keep_optimizer=True):
        self.calls.append((task, n_batches, weight, rate, keep_optimizer))
        return weight * rate * self.moves[task]

    def merged_loss(self, task, deltas, alphas, rows=None):
        self.calls.append(("look", task, rows))
        point = self.point + sum(a * d for a, d in zip(alphas, deltas, strict=True))
        return 0.5 * float(point @ point), np.array([point @ d for d in deltas])

    def apply_deltas(self, deltas, alphas):
        self.point = self.point + sum(a * d for a, d in zip(alphas, deltas, strict=True))

    def evaluate(self, task, split="select"):
        return -0.5 * float(self.point @ self.point)


def plane_pool(goal: str = "primary", select_rows: int = 50, **train) -> Pool:
    cards = {
        name: TaskCard(name, Objective.CLASSIFICATION, Form.TEXT, "", 100, 5.0, 2, select_rows) for name in Plane.moves
    }
    return Pool("primary", cards, goal, TrainSettings(**train))


def run(method: AlphaVIL, pool: Pool, learner=None):
    learner, rng = learner or Plane(), np.random.default_rng(0)
    state = method.start(pool, rng)
    while not method.done(state):
        state = method.round(state, learner, rng)
    return state, learner


def test_one_epoch_is_algorithm_one():
    """Against the algorithm written out for the plane with torch's own SGD."""
    settings = AlphaVILSettings(as_published=True, epochs=1, alpha_rate=0.02, alpha_momentum=0.5, alpha_steps=7)
    state, learner = run(AlphaVIL(settings), plane_pool())
    start = torch.tensor([3.0, 2.0], dtype=torch.float64)
    deltas = torch.stack([torch.from_numpy(Plane.moves[name] / 3) for name in ("primary", "bad", "good")])
    alphas = torch.ones(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([alphas], lr=0.02, momentum=0.5)
    losses = []
    for _ in range(7):
        optimizer.zero_grad()
        loss = 0.5 * (start + alphas @ deltas).square().sum()
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    entry = state.history[0]
    np.testing.assert_allclose(entry["alphas"], alphas.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(entry["losses"], losses, rtol=1e-12)
    np.testing.assert_allclose(learner.point, (start + alphas @ deltas).detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(state.weights, alphas.detach().numpy(), rtol=1e-12)  # w = 1 + (α − 1)


def test_weights_follow_what_helps():
    settings = AlphaVILSettings(epochs=60, alpha_rate=0.002, weight_on="loss", rescale=False, negligible=0.05)
    state, learner = run(AlphaVIL(settings), plane_pool(), Plane((60.0, 40.0)))
    weights = dict(zip(state.names, state.weights, strict=True))
    assert weights["bad"] < 0.05  # geometrically: its update shrinks with its weight, and so does the gradient along it
    assert min(weights["good"], weights["primary"]) > 1.1
    assert np.linalg.norm(learner.point) < 0.7 * np.hypot(60, 40)
    recipe = AlphaVIL(settings).recipe(state)
    assert recipe.auxiliaries == ("good",)
    assert recipe.verdict.endswith("leave out bad")
    phase = recipe.phases[0]
    assert phase.shares == {"primary": 4, "good": 8}
    assert sum(phase.weights.values()) == pytest.approx(1, abs=0.01)  # but for the share of what was left out


def test_weights_stop_at_the_floor():
    settings = AlphaVILSettings(epochs=3, alpha_rate=0.3, alpha_steps=1, rescale=False)
    state, _ = run(AlphaVIL(settings), plane_pool(), Plane((60.0, 40.0)))
    assert min(entry["alphas"][1] for entry in state.history) < 0
    assert state.history[0]["weights"][1] == settings.floor
    assert state.weights[1] == settings.floor


def test_each_epoch_collects_a_fraction_with_the_share_of_the_weight():
    settings = AlphaVILSettings(fraction=0.25, optimizer_state="fresh", weight_on="loss")
    state, learner = run(AlphaVIL(settings), plane_pool(epochs=2))
    assert state.epochs == 8  # 2 passes of the primary in quarters
    assert learner.calls[0] == ("begin", {"primary": 8, "bad": 80, "good": 16})
    assert learner.calls[1:4] == [(t, n, 1 / 3, 1.0, False) for t, n in [("primary", 1), ("bad", 10), ("good", 2)]]
    second = [call for call in learner.calls if call[0] in Plane.moves][3:6]
    weights = np.array(state.history[0]["weights"])
    assert [call[2] for call in second] == pytest.approx(weights / weights.sum())


def test_the_weight_may_act_on_the_rate_and_a_loss_scale_stays_on_the_loss():
    settings = AlphaVILSettings(epochs=1, weight_on="rate")
    _, learner = run(AlphaVIL(settings), plane_pool(loss_scale={"bad": 0.5}))
    assert learner.calls[1:4] == [
        ("primary", 4, 1.0, 1 / 3, True),
        ("bad", 40, 0.5, 1 / 3, True),
        ("good", 8, 1.0, 1 / 3, True),
    ]


def test_weights_that_sink_together_keep_their_ratio():
    """Every task harms: without rescaling, all weights end at the floor, where their shares are equal again."""

    class Harm(Plane):
        moves = {"primary": np.array([0.3, 0.0]), "good": np.array([0.0, 0.1]), "bad": np.array([0.3, 0.3])}

    settings = {"epochs": 40, "alpha_rate": 0.05, "weight_on": "loss"}
    kept, _ = run(AlphaVIL(AlphaVILSettings(**settings)), plane_pool(), Harm((30.0, 20.0)))
    assert sum(kept.weights) == pytest.approx(3)
    assert kept.names[int(np.argmax(kept.weights))] == "good"  # the least harmful
    sunk, _ = run(AlphaVIL(AlphaVILSettings(**settings, rescale=False)), plane_pool(), Harm((30.0, 20.0)))
    assert min(sunk.weights) == 1e-6


def test_auto_settings_know_the_optimiser_and_the_number_of_epochs():
    def decided(epochs, **train):
        return AlphaVIL(AlphaVILSettings(epochs=epochs)).start(plane_pool(**train), np.random.default_rng(0))

    assert decided(12).weight_on == "rate"
    assert decided(12, optimizer="sgd").weight_on == "loss"
    assert [decided(n).alpha_rate for n in (4, 20, 100, 400)] == [0.05, 0.025, 0.005, 0.005]
    published = AlphaVIL(AlphaVILSettings(as_published=True, epochs=12)).start(plane_pool(), np.random.default_rng(0))
    assert (published.weight_on, published.alpha_rate) == ("loss", 0.005)


def test_a_loss_that_is_not_finite_ends_the_run_with_what_was_learned():
    class Diverging(Plane):
        def merged_loss(self, task, deltas, alphas, rows=None):
            loss, gradient = super().merged_loss(task, deltas, alphas, rows)
            return (np.nan, gradient * np.nan) if len(self.calls) > 40 else (loss, gradient)

    method = AlphaVIL(AlphaVILSettings(epochs=20, weight_on="loss"))
    state, learner = run(method, plane_pool(), Diverging())
    assert 0 < len(state.history) < 20
    assert np.isfinite(learner.point).all()
    assert np.isfinite(state.weights).all()
    assert "no longer finite" in method.recipe(state).verdict
    first, _ = run(AlphaVIL(AlphaVILSettings(epochs=20, weight_on="loss")), plane_pool())
    assert "finite" not in method.recipe(first).verdict


def test_a_first_epoch_that_is_not_finite_leaves_the_primary_alone():
    class Diverging(Plane):
        def merged_loss(self, task, deltas, alphas, rows=None):
            _, gradient = super().merged_loss(task, deltas, alphas, rows)
            return np.nan, gradient * np.nan

    method = AlphaVIL(AlphaVILSettings(epochs=3, weight_on="loss"))
    state, _ = run(method, plane_pool(), Diverging())
    assert method.journal(state) == {"diverged": state.diverged}
    assert not method.improved(state)  # an untrained model is no result
    recipe = method.recipe(state)
    assert recipe.auxiliaries == ()
    assert recipe.verdict == f"no weights were learned; {state.diverged}"
    whole, _ = run(method, plane_pool())
    assert "score" in method.journal(whole)
    assert method.recipe(whole).auxiliaries


@pytest.mark.parametrize("steps", [0, 1, 10])
def test_a_change_that_is_not_finite_is_never_taken(steps):
    """Also without α-steps, where nothing else would look at the loss."""

    class Exploding(Plane):
        def collect_delta(self, task, n_batches, **given):
            delta = super().collect_delta(task, n_batches, **given)
            return np.nan * delta if [call[0] for call in self.calls].count(task) == 3 and task == "bad" else delta

    method = AlphaVIL(AlphaVILSettings(epochs=5, alpha_steps=steps, weight_on="loss"))
    state, learner = run(method, plane_pool(), Exploding())
    assert len(state.history) == 2
    assert np.isfinite(learner.point).all()
    assert "ended in epoch 3" in method.recipe(state).verdict
    whole, _ = run(method, plane_pool())
    assert len(whole.history) == 5
    assert (whole.weights == [1.0, 1.0, 1.0]) == (steps == 0)


def test_the_verdict_ranks_by_weight_times_batches():
    """A task with one batch hardly moves the model, keeps its weight, and must not be named first for that."""
    method = AlphaVIL(AlphaVILSettings(epochs=1))
    state = method.start(plane_pool(), np.random.default_rng(0))
    state = state.model_copy(update={"weights": [1.9, 1.0, 0.8], "batches": [4, 1, 8], "history": [{}]})
    recipe = method.recipe(state)
    assert recipe.verdict.startswith("train with good")
    assert recipe.evidence["contributions"]["good"] > 5 * recipe.evidence["contributions"]["bad"]
    small = method.recipe(state.model_copy(update={"batches": [400, 1, 800]}))
    assert small.auxiliaries == ("good",)


def test_max_batches_cuts_the_auxiliaries_not_the_primary():
    state, _ = run(AlphaVIL(AlphaVILSettings(epochs=5)), plane_pool(max_batches=80))
    assert state.batches == [4, 10, 2]  # 16 an epoch: 4, and 12 at 40:8


def test_average_tunes_on_all_tasks():
    _, learner = run(AlphaVIL(AlphaVILSettings(epochs=1, alpha_steps=2)), plane_pool("average"))
    assert [call[1] for call in learner.calls if call[0] == "look"] == ["primary", "bad", "good"] * 2


def test_a_small_select_is_seen_whole_and_a_large_one_in_fresh_shuffled_batches():
    settings = AlphaVILSettings(tuning_rows=30, alpha_steps=7)
    assert _row_batches(30, settings, np.random.default_rng(0)) == [None] * 7
    batches = _row_batches(100, settings, np.random.default_rng(0))
    assert [len(batch) for batch in batches] == [30] * 7
    assert len(np.unique(np.concatenate(batches[:3]))) == 90  # a pass repeats no row
    assert not np.array_equal(np.sort(np.concatenate(batches[:3])), np.sort(np.concatenate(batches[3:6])))


def tiny_run(suite, settings, tmp_path=None, train=None, on_round=None, **options):
    train = train or {}
    learner = tiny_learner(suite, **train)
    pool = Pool(
        suite.primary, {name: t.card for name, t in suite.tasks.items()}, train=TrainSettings(batch_size=16, **train)
    )
    trials = LocalTrials(learner, learner.settings)
    method = AlphaVIL(settings, seed=5)
    recipe = run_method(
        method, learner, pool, trials, single_run_work=100, directory=tmp_path, on_round=on_round, **options
    )
    return recipe, learner


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_one_task_without_tuning_is_single_task_training_to_the_bit(optimizer):
    suite = tiny_suite().subset([])
    train = {"optimizer": optimizer, "epochs": 4, "patience": None}
    recipe, learner = tiny_run(suite, AlphaVILSettings(alpha_steps=0), train=train)
    twin = tiny_learner(suite, **train)
    result = fit(twin, [Phase(shares={suite.primary: 1})], twin.settings, seed=5)
    mine, theirs = learner.model.state_dict(), twin.model.state_dict()
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)
    assert recipe.evidence["best_score"] == result.score
    assert [entry["score"] for entry in recipe.evidence["epochs"]] == [entry["score"] for entry in result.history[1:]]


def test_the_learner_ends_with_the_best_weights():
    recipe, learner = tiny_run(tiny_suite(), AlphaVILSettings(epochs=6))
    scores = [entry["score"] for entry in recipe.evidence["epochs"]]
    assert recipe.evidence["best_epoch"] == int(np.argmax(scores)) + 1
    assert learner.evaluate(learner.primary) == recipe.evidence["best_score"] == max(scores)


class Killed(Exception):
    pass


@pytest.mark.parametrize("seconds", [0.0, 1e9])
@pytest.mark.parametrize("kill_at", slow_but((1, 3, 6), 3))
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path, kill_at, seconds):
    settings = AlphaVILSettings(epochs=6, alpha_rate=0.1, tuning_rows=16)

    def kill(done, total, entry, meter):
        if done >= kill_at:
            raise Killed

    whole, _ = tiny_run(tiny_suite(), settings, tmp_path / "whole")
    with pytest.raises(Killed):
        tiny_run(tiny_suite(), settings, tmp_path / "killed", on_round=kill, checkpoint_seconds=seconds)
    resumed, _ = tiny_run(tiny_suite(), settings, tmp_path / "killed", checkpoint_seconds=seconds)
    assert resumed.to_json() == whole.to_json()
    for file in ("trained/state.safetensors", "trained/state.json", "journal.jsonl"):
        assert (tmp_path / "killed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
