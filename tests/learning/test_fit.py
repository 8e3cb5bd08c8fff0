"""Schedules: lengths, orders, early stopping, the best model, and continuing a killed fit."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sidequest.errors import SettingsError
from sidequest.learning import fit as fitting
from sidequest.learning.checkpoints import Checkpoints
from sidequest.learning.fit import FitResult, apportion, fit, kept_score, phase_length, task_order
from sidequest.recipe import Phase, Subset
from sidequest.settings import TrainSettings
from sidequest.simulation.learner import SimulatedLearner, helpful
from tests.helpers.tiny import tiny_learner

TRAIN = TrainSettings(batch_size=16, epochs=3, patience=None)


def counts(runs: list[tuple[str, int]]) -> Counter:
    total: Counter = Counter()
    for task, n in runs:
        total[task] += n
    return total


def test_an_epoch_is_an_epoch_of_the_primary():
    learner = tiny_learner()  # primary: 70 rows, 5 batches of 16
    length = phase_length(Phase(shares={"main-one": 1, "helper": 3}), learner, TRAIN)
    assert length.total == 3 * 5 * 4
    assert length.looks == (20, 40, 60)
    runs = task_order(Phase(shares={"main-one": 1, "helper": 3}), 0, 60, np.random.default_rng(0))
    assert counts(runs) == {"main-one": 15, "helper": 45}


def test_length_in_batches_without_the_primary_and_with_a_cap():
    learner = tiny_learner()
    assert phase_length(Phase(shares={"helper": 1}, batches=7), learner, TRAIN).total == 7
    assert phase_length(Phase(shares={"helper": 1}), learner, TRAIN).total == 3 * 10
    capped = phase_length(Phase(shares={"main-one": 1}), learner, TRAIN.model_copy(update={"max_batches": 4}))
    assert (capped.total, capped.looks[-1]) == (4, 4)
    subset = Phase(shares={"main-one": 1}, subsets={"main-one": Subset(ids=tuple(range(20)))})
    assert phase_length(subset, learner, TRAIN).total == 3 * 2


def test_a_cycle_begins_with_the_primary_whatever_it_is_called():
    for primary in ("a", "z"):
        phase = Phase(order="cycle", shares={primary: 2, "m": 1, "k": 1})
        assert task_order(phase, 0, 4, np.random.default_rng(0), primary) == [(primary, 2), ("k", 1), ("m", 1)]


def test_cycle_runs_blocks_and_continues_across_looks():
    phase = Phase(order="cycle", shares={"a": 2, "b": 0, "c": 3})
    whole = task_order(phase, 0, 12, np.random.default_rng(0))
    assert whole == [("a", 2), ("c", 3), ("a", 2), ("c", 3), ("a", 2)]
    parts = task_order(phase, 0, 7, np.random.default_rng(0)) + task_order(phase, 7, 12, np.random.default_rng(9))
    assert counts(parts) == counts(whole)
    assert task_order(phase, 7, 12, np.random.default_rng(1)) == [("c", 3), ("a", 2)]


def test_shuffle_keeps_shares_exactly_and_sample_in_expectation():
    rng = np.random.default_rng(0)
    shares = {"a": 70.0, "b": 150.0, "c": 3.0}
    got = counts(task_order(Phase(order="shuffle", shares=shares), 0, 223, rng))
    assert got == {"a": 70, "b": 150, "c": 3}
    drawn = counts(task_order(Phase(order="sample", shares=shares), 0, 22300, rng))
    assert drawn["a"] / 22300 == pytest.approx(70 / 223, abs=0.015)


def test_apportion_is_exact_in_total_and_unbiased():
    rng = np.random.default_rng(0)
    shares = np.array([0.3, 7.0, 1.7, 1.0])
    got = np.array([apportion(shares, 10, rng) for _ in range(4000)])
    assert (got.sum(1) == 10).all()
    assert (np.abs(got - shares) < 1).all()
    assert got.mean(0) == pytest.approx(shares, abs=0.03)


def test_the_learner_ends_as_its_best_on_select():
    learner = tiny_learner()
    found = fit(learner, [Phase(shares={"main-one": 1, "helper": 1}, epochs=6)], TRAIN, seed=0)
    assert [entry["batches"] for entry in found.history] == [0, 10, 20, 30, 40, 50, 60]
    assert found.score == kept_score(found.history, "best") == max(entry["score"] for entry in found.history)
    assert learner.evaluate("main-one") == found.score


class Scripted(SimulatedLearner):
    """Its scores on *select* are given beforehand; its weights are how many evaluations it has seen."""

    def __init__(self, scores: list[float]) -> None:
        super().__init__(helpful(0, 1), seed=0)
        self.scores, self.evaluated = scores, 0

    def evaluate(self, task: str, split: str = "select") -> float:
        self.evaluated += 1
        return self.scores[self.evaluated - 1]

    def snapshot(self, *, weights_only: bool = False) -> Any:
        return self.evaluated if weights_only else super().snapshot()

    def restore(self, snapshot: Any) -> None:
        self.kept = snapshot


def scripted_fit(
    scores: list[float], phases: int = 1, ends: Sequence[int] | None = None, **train: Any
) -> tuple[FitResult, Scripted]:
    learner = Scripted(scores)
    settings = TrainSettings(**{"epochs": 3, "patience": None, **train})
    return fit(learner, [Phase(shares={learner.primary: 1})] * phases, settings, 0, ends=ends), learner


def test_a_start_that_training_does_not_improve_is_kept_and_gives_way_at_a_tie():
    found, learner = scripted_fit([0.9, 0.1, 0.5, 0.8])
    assert (found.score, learner.kept) == (0.9, 1)
    found, learner = scripted_fit([0.9, 0.1, 0.9, 0.9])
    assert (found.score, learner.kept) == (0.9, 3)


def test_the_last_model_is_kept_on_request():
    found, learner = scripted_fit([0.9, 0.1, 0.8, 0.5], keep="last")
    assert (found.score, learner.kept) == (0.5, 4)
    assert kept_score(found.history, "last") == 0.5
    found, learner = scripted_fit([0.9, 0.1, 0.8, 0.5, 0.7, 0.6, 0.4], phases=2, keep="last")
    assert (found.score, learner.kept) == (0.4, 7)


def test_patience_counts_from_the_first_trained_model_not_from_the_start():
    found, _ = scripted_fit([0.9, 0.1, 0.2, 0.3, 0.4], epochs=4, patience=1)
    assert len(found.history) == 5
    found, _ = scripted_fit([0.9, 0.1, 0.1, 0.3, 0.4], epochs=4, patience=1)
    assert len(found.history) == 3


def test_the_result_of_two_phases_is_the_best_of_the_second_which_starts_from_the_best_of_the_first():
    found, learner = scripted_fit([0.1, 0.9, 0.2, 0.3, 0.4, 0.6, 0.5], phases=2)
    assert found.score == kept_score(found.history, "best") == 0.6
    assert learner.kept == 6
    assert max(entry["score"] for entry in found.history) == 0.9  # of the first phase


@pytest.mark.parametrize(
    ("scores", "phases", "kept"),
    [
        ([0.9, 0.1, 0.5, 0.8], 1, (0,)),
        ([0.2, 0.1, 0.5, 0.4], 1, (2,)),
        ([0.1, 0.9, 0.2, 0.3, 0.4, 0.6, 0.5], 2, (1, 2)),
    ],
)
def test_another_fit_can_end_where_the_first_was_kept_whatever_select_says(scores, phases, kept):
    found, _ = scripted_fit(scores, phases)
    assert found.kept == kept
    rising = [0.01 * place for place in range(9)]
    again, learner = scripted_fit(rising, phases, ends=found.kept)
    assert again.kept == kept
    assert learner.evaluated == 1 + sum(kept)  # no batch more
    assert scripted_fit(rising, phases)[0].kept != kept


def test_patience_stops_early_and_a_phase_may_forbid_it():
    impatient = TRAIN.model_copy(update={"patience": 1, "learning_rate": 1e-9, "epochs": 9.0})
    learner = tiny_learner(learning_rate=1e-9)
    assert len(fit(learner, [Phase(shares={"main-one": 1})], impatient, 0).history) < 10
    learner = tiny_learner(learning_rate=1e-9)
    assert len(fit(learner, [Phase(shares={"main-one": 1}, stop_early=False)], impatient, 0).history) == 10


def test_goal_average_scores_all_tasks():
    learner = tiny_learner()
    fit(learner, [Phase(shares=dict.fromkeys(learner.tasks, 1))], TRAIN, 0, goal="average")
    assert learner.meter.of("value").evaluations == 4  # one before the first step


def test_an_unknown_task_is_refused_before_any_work():
    learner = tiny_learner()
    with pytest.raises(SettingsError, match="trains on nobody"):
        fit(learner, [Phase(shares={"main-one": 1}), Phase(shares={"nobody": 1})], TRAIN, 0)
    assert learner.meter.work == 0


def test_a_killed_fit_continues_to_the_same_result(tmp_path, monkeypatch):
    phases = [Phase(order="shuffle", shares={"main-one": 70, "value": 90}), Phase(shares={"main-one": 1}, epochs=4)]
    whole = tiny_learner()
    expected = fit(whole, phases, TRAIN, seed=1)

    class Killed(Exception):
        pass

    for stop_after in (2, 5):
        directory = tmp_path / str(stop_after)
        looks = 0

        def score(learner, goal, stop=stop_after):
            nonlocal looks
            looks += 1
            if looks > stop:
                raise Killed
            return learner.evaluate(learner.primary)

        monkeypatch.setattr(fitting, "score_of", score)
        with pytest.raises(Killed):
            fit(tiny_learner(), phases, TRAIN, seed=1, checkpoints=Checkpoints(directory, seconds=0))
        monkeypatch.undo()
        learner = tiny_learner()
        found = fit(learner, phases, TRAIN, seed=1, checkpoints=Checkpoints(directory, seconds=0))
        assert found == expected
        assert learner.snapshot().plain == whole.snapshot().plain
        assert learner.evaluate_all("main-one", "report") == whole.evaluate_all("main-one", "report")
        counted = {name: (c.batches, c.examples) for name, c in learner.meter.tasks.items()}
        assert counted == {name: (c.batches, c.examples) for name, c in whole.meter.tasks.items() if c.batches}
