"""A learner that knows head matrices and nothing else, and a driver that plays GradTS to its end on given scores."""

from __future__ import annotations

import numpy as np

from sidequest.learning.meter import Meter
from sidequest.learning.protocol import OwnPowers, Warmup
from sidequest.methods.base import Pool
from sidequest.tasks.task import Form, Objective, TaskCard

REFERENCE = np.arange(1.0, 13.0).reshape(3, 4)


def shuffled(part: float, seed: int) -> np.ndarray:
    """The primary's importances with this part of the heads in another order."""
    rng = np.random.default_rng(seed)
    flat = REFERENCE.ravel().copy()
    places = rng.choice(12, round(12 * part), replace=False)
    flat[places] = flat[rng.permutation(places)]
    return flat.reshape(3, 4)


class Heads(OwnPowers):
    """A learner that knows matrices and nothing else. Rows: the first half of a task's are its own matrix, others reversed."""

    primary = "p"

    def __init__(self, matrices: dict[str, np.ndarray], rows: int = 6) -> None:
        self.matrices, self.rows, self.meter = matrices, rows, Meter()
        self.asked: list[tuple[str, Warmup]] = []

    def head_importance(self, task, warmup):
        self.asked.append((task, warmup))
        return self.matrices[task]

    def instance_importance(self, task, warmup):
        for start in range(0, self.rows, 2):
            ids = 10 + np.arange(start, start + 2)
            own = (ids - 10 < self.rows / 2)[:, None, None]
            values = np.where(own, self.matrices[task], self.matrices[task].max() + 1 - self.matrices[task])
            yield ids[::-1], values[::-1].astype(np.float32)


MATRICES = {
    "p": REFERENCE,
    "far": 13 - REFERENCE,
    "near": shuffled(0.3, 1),
    "same": REFERENCE * 7,
    "mid": shuffled(0.6, 2),
}


def pool(names, goal="primary", rows=None):
    cards = {
        name: TaskCard(name, Objective.CLASSIFICATION, Form.TEXT, "", (rows or {}).get(name, 6), 5.0, 2)
        for name in names
    }
    return Pool("p", cards, goal)


def rank(method, matrices=None, rows=None):
    """The state after all tasks were looked at."""
    matrices = matrices or MATRICES
    learner, rng = Heads(matrices), np.random.default_rng(0)
    state = method.start(pool(matrices, rows=rows), rng)
    for _ in matrices:
        assert method.ask(state, 1) == []
        state = method.round(state, learner, rng)
    return state, learner


def go(method, score, matrices=None, parallel=1, rows=None):
    """To the end; `score` gives *select* for a list of auxiliaries. Returns the state and the sets tried."""
    state, learner = rank(method, matrices, rows)
    tried = []
    while not method.done(state):
        plans = method.ask(state, parallel)
        if not plans:
            state = method.round(state, learner, np.random.default_rng(0))
        for plan in plans[:1]:
            auxiliaries = [name for name in plan.phases[0].shares if name != "p"]
            tried.append(auxiliaries)
            state = method.tell(state, plan, score(auxiliaries))
        state = type(state).model_validate_json(state.model_dump_json())  # the driver may do so at any time
    return state, tried


def only_same(chosen):
    return {0: 0.6, 1: 0.7}.get(len(chosen), 0.5)
