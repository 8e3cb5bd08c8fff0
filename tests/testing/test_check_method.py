"""Every listed method keeps the contract, and the check can fail."""

import itertools

import numpy as np
import pytest

from sidequest.methods.base import NoSettings
from sidequest.methods.baselines import FixedState, Single
from sidequest.recipe import Phase
from sidequest.testing import check_method

BASELINES = ["single", "all", "uniform", "size", "temperature", "random-subset", "heu-size", "heu-type", "heu-len"]


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_keep_the_contract(name):
    recipe = check_method(name, fresh_process=name in ("random-subset", "heu-size"))
    assert recipe.method == name


class Forgetful(Single):
    """Draws from a generator of its own: the same seed gives another recipe."""

    _count = itertools.count()

    def phase(self, pool, rng):
        return Phase(shares={pool.primary: 1 + next(self._count)})


class OrderBound(Single):
    """Takes the first candidate of the suite file."""

    def phase(self, pool, rng):
        first = next((name for name in pool.cards if name != pool.primary), None)
        return Phase(shares={pool.primary: 1, **({first: 1} if first else {})})


class Peeping(Single):
    """Looks at *report*."""

    def done(self, state):
        return False

    def round(self, state, learner, rng):
        learner.evaluate(learner.primary, "report")
        return state


class Stubborn(Single):
    """Keeps its state on itself: a resumed run starts again."""

    def __init__(self, settings: NoSettings | None = None, *, seed: int = 0) -> None:
        super().__init__(settings, seed=seed)
        self.draws: list[float] = []

    def start(self, pool, rng):
        return FixedState(primary=pool.primary, phase=Phase(shares={pool.primary: 1}))

    def done(self, state):
        return state.evidence.get("rounds", 0) == 4

    def round(self, state, learner, rng):
        self.draws.append(float(rng.random()))
        evidence = {"rounds": state.evidence.get("rounds", 0) + 1, "sum": float(np.sum(self.draws))}
        return state.model_copy(update={"evidence": evidence})


class Restless(Single):
    """Says that it makes two rounds, and makes four."""

    def done(self, state):
        return len(state.evidence) == 4

    def round(self, state, learner, rng):
        return state.model_copy(update={"evidence": {**state.evidence, str(len(state.evidence)): 1}})

    def total(self, state):
        return 2


class Spender(Single):
    """Says that it costs nothing, and trains."""

    def done(self, state):
        return bool(state.evidence)

    def round(self, state, learner, rng):
        learner.train(learner.primary, 1)
        return state.model_copy(update={"evidence": {"trained": True}})


class Inventor(Single):
    """Trains on a task that there is not."""

    def phase(self, pool, rng):
        return Phase(shares={pool.primary: 1, "invented": 1})


class Disloyal(Single):
    """Trains on everything but the primary."""

    def phase(self, pool, rng):
        return Phase(shares=dict.fromkeys(pool.candidates or pool.names, 1))


class Hashed(Single):
    """Lets the process's hashing decide."""

    def phase(self, pool, rng):
        return Phase(shares={pool.primary: 1 + hash(pool.primary) % 1000})


def test_hashing_is_found_in_a_fresh_process():
    with pytest.raises(AssertionError, match="fresh process"):
        check_method(Hashed)


@pytest.mark.parametrize(
    ("cls", "says"),
    [
        (Restless, "`total` says 2"),
        (Spender, "costs 0x"),
        (Inventor, "there is no task"),
        (Disloyal, "never trains on the primary"),
        (Forgetful, "same seed"),
        (OrderBound, "order of the candidates"),
        (Peeping, "'report' split"),
        (Stubborn, "killed after call"),
    ],
)
def test_the_check_finds_breaches(cls, says):
    with pytest.raises(Exception, match=says):
        check_method(cls, fresh_process=False)
