"""The contract of learners: the simulated and the torch learner keep it, and the check can fail."""

import functools

import pytest

from sidequest.simulation.learner import SimulatedLearner, helpful
from sidequest.testing import check_learner
from tests.helpers.tiny import tiny_learner, tiny_suite

SIMULATION = helpful(noise=0.05)


def simulated(seed):
    return SimulatedLearner(SIMULATION, seed=seed)


def test_the_simulated_learner_keeps_the_contract():
    check_learner(simulated, make_with=lambda names, seed: SimulatedLearner(SIMULATION.subset(names), seed=seed))


def test_the_torch_learner_keeps_the_contract():
    check_learner(
        functools.partial(tiny_learner, None),
        make_with=lambda names, seed: tiny_learner(tiny_suite().subset(names), seed),
    )


class SharesProgress(SimulatedLearner):
    def fresh(self, seed):
        other = super().fresh(seed)
        other._at = self._at
        return other


class ForgetsPositions(SimulatedLearner):
    def restore(self, snapshot):
        positions = self._at.positions
        super().restore(snapshot)
        if "positions" in snapshot:
            self._at.positions = positions


class MovesWhenLooked(SimulatedLearner):
    def evaluate(self, task, split="select"):
        self._at.exposures[task] = self._at.exposures.get(task, 0.0) + 0.01
        return super().evaluate(task, split)


class SnapshotsByReference(SimulatedLearner):
    def snapshot(self, *, weights_only=False):
        return {**vars(self._at), "seed": self.seed}

    def restore(self, snapshot):
        for name, value in snapshot.items():
            if name != "seed":
                setattr(self._at, name, value)


class SavesNow(SimulatedLearner):
    def save(self, directory, snapshot=None):
        super().save(directory)


class MiscountsEpochs(SimulatedLearner):
    @property
    def sizes(self):
        return {task: rows + 1 for task, rows in super().sizes.items()}


class TakesAnyName(SimulatedLearner):
    def train(self, task, n_batches, **kwargs):
        return super().train(task if task in self.tasks else self.primary, n_batches, **kwargs)


class DependsOnOthers(SimulatedLearner):
    def train(self, task, n_batches, **kwargs):
        return [loss + len(self.tasks) for loss in super().train(task, n_batches, **kwargs)]


@pytest.mark.parametrize(
    ("cls", "says"),
    [
        (SharesProgress, "shares state|equal seeds"),
        (ForgetsPositions, "bit-identical"),
        (MovesWhenLooked, "twice"),
        (SnapshotsByReference, "bit-identical"),
        (SavesNow, "must save the snapshot"),
        (MiscountsEpochs, "an epoch of"),
        (TakesAnyName, "unknown task"),
        (DependsOnOthers, "tasks that are not trained on"),
    ],
)
def test_the_check_finds_breaches(cls, says):
    with pytest.raises(AssertionError, match=says):
        check_learner(
            lambda seed: cls(SIMULATION, seed=seed),
            make_with=lambda names, seed: cls(SIMULATION.subset(names), seed=seed),
            fresh_process=False,
        )
