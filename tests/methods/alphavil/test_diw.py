"""DIW: the inner loop on a learner whose scores are scripted, and on the real one."""

import numpy as np
import pytest

from sidequest.methods.alphavil.diw import DIW, DIWSettings
from sidequest.methods.base import Pool
from sidequest.runs.driver import run_method
from sidequest.search.trials import LocalTrials
from sidequest.tasks.task import Form, Objective, TaskCard
from tests.helpers.tiny import tiny_learner, tiny_suite

NAMES = ("primary", "other")


class Scripted:
    """A learner whose scores are read from a list, and which writes down what was asked of it."""

    def __init__(self, scores) -> None:
        self.scores, self.calls = list(scores), []

    def epoch_batches(self, task, subset=None):
        return {"primary": 2, "other": 3}[task]

    def begin(self, total_batches, *, rate=1.0, keep_optimizer=False):
        self.calls.append(("begin", total_batches))

    def snapshot(self):
        self.calls.append("snapshot")
        return "start"

    def restore(self, snapshot):
        self.calls.append("restore")

    def train(self, task, n_batches, *, weight=1.0, subset=None):
        self.calls.append((task, n_batches, weight))

    def evaluate(self, task, split="select"):
        assert (task, split) == ("primary", "select")
        self.calls.append("score")
        return self.scores.pop(0)


def one_epoch(scores, **settings):
    cards = {name: TaskCard(name, Objective.CLASSIFICATION, Form.TEXT, "", 100, 5.0, 2, 50) for name in NAMES}
    method, learner = DIW(DIWSettings(epochs=1, **settings)), Scripted(scores)
    state = method.start(Pool("primary", cards), np.random.default_rng(0))
    return method.round(state, learner, np.random.default_rng(1)), learner


def test_an_epoch_that_improves_is_taken_at_once():
    #                           before  alone: primary, other   together
    state, learner = one_epoch([0.5, 0.7, 0.4, 0.6], as_published=True)
    assert not learner.scores
    assert learner.calls[:2] == [("begin", 5), "score"]
    assert learner.calls[2:9] == [
        "snapshot",
        ("primary", 2, 1.0),
        "score",
        "restore",
        ("other", 3, 1.0),
        "score",
        "restore",
    ]
    joint = learner.calls[9:14]
    assert sorted(joint) == [("other", 1, 0.5)] * 3 + [("primary", 1, 0.5)] * 2
    assert state.weights == pytest.approx([1 + 0.1 * 0.1, 1 - 0.1 * 0.2])
    assert (state.score, state.best, state.best_epoch) == (0.6, 0.6, 1)


def test_an_epoch_without_improvement_is_trained_again_with_new_weights():
    state, learner = one_epoch([0.5, 0.7, 0.4, 0.5, 0.45, 0.55], rate=1.0, rescale=False)
    assert state.history[0]["attempts"] == [0.5, 0.45, 0.55]  # equal is no improvement
    joint = [call for call in learner.calls[9:] if isinstance(call, tuple)]
    assert [call[0] for call in joint[:5]] == [call[0] for call in joint[5:10]] == [call[0] for call in joint[10:]]
    after_one = np.array([1 + 0.7 - 0.5, 1 + 0.4 - 0.5])
    after_two = after_one + np.array([0.7 - 0.45, 0.4 - 0.45])
    for start, weights in ((5, after_one), (10, after_two)):
        shares = dict(zip(NAMES, weights / weights.sum(), strict=True))
        assert all(call[2] == pytest.approx(shares[call[0]]) for call in joint[start : start + 5])
    assert learner.calls.count("restore") == 2 + 2


def test_patience_ends_the_loop_and_takes_the_last_and_weights_stop_at_the_floor():
    state, learner = one_epoch([0.9, 0.5, 0.1, 0.6, 0.7, 0.8], rate=3.0, patience=3, rescale=False)
    assert not learner.scores
    assert state.score == 0.8
    assert min(state.weights) == 1e-6
    assert learner.calls.count("restore") == 2 + 2  # not after the last


def test_a_perfect_score_is_not_trained_for_again():
    state, _ = one_epoch([1.0, 0.9, 0.9, 1.0], patience=10)
    assert state.history[0]["attempts"] == [1.0]
    _, other = one_epoch([0.9, 0.8, 0.8, *[0.9] * 10], patience=10)
    assert not other.scores  # a tie below the maximum is


class Killed(Exception):
    pass


@pytest.mark.parametrize("kill_at", [1, 3])
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path, kill_at):
    def go(directory, kill=None):
        suite = tiny_suite()
        learner = tiny_learner(suite)

        def on_round(done, total, entry, meter):
            if kill is not None and done >= kill:
                raise Killed

        pool = Pool(suite.primary, {name: task.card for name, task in suite.tasks.items()})
        return run_method(
            DIW(DIWSettings(epochs=4, patience=3), seed=2),
            learner,
            pool,
            LocalTrials(learner, learner.settings),
            single_run_work=100,
            directory=tmp_path / directory,
            checkpoint_seconds=0,
            on_round=on_round,
        )

    whole = go("whole")
    with pytest.raises(Killed):
        go("killed", kill_at)
    assert go("killed").to_json() == whole.to_json()
    weights = [(tmp_path / name / "trained/state.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]
