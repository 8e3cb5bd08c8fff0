"""What a method is. To add one, see CONTRIBUTING: one file, one line in `methods/registry.py`, one test.

Lifecycle, driven by `sidequest.runs.driver`, which alone saves, resumes, meters and shows progress::

    state = method.start(pool, rng)
    while not method.done(state):
        plans = method.ask(state, n)                  # whole training runs that the method wants, or none
        if plans:                                     # all of them may run; the first one's score is told
            state = method.tell(state, plans[0], score)
        else:
            state = method.round(state, learner, rng) # the method drives the learner itself
    recipe = method.recipe(state)

Some methods learn weights *while* they train, so that the model in the learner is itself a result (αVIL, DIW). Such a method
sets `trains_model` and says in `improved` when the model is the best yet: the driver keeps it, gives it back at the end and
saves it in `trained/` beside the recipe. The recipe still says what to train on, for a model of another size or another
trainer.

A method whose `recipe` means something after any number of calls sets `anytime`: stopped by a budget, it decides by what it has
seen so far.

Many workers. `ask` may name more plans than the first: those that it would ask for next *whatever score the first one gets*.
They run at the same time, on as many workers as there are. The driver tells one score at a time, in the order of the plans,
and asks again: what it is then given begins with the plans that it was given before. So a method's decisions do not depend on
the number of workers or on which of them is quicker, and its state needs no list of what is pending: `ask` gives it. A method
that cannot say what it wants before it knows a score gives one plan. One that decides with scores outstanding does so by a
setting (`pending` of AutoSeM), never by `n`. Rounds follow each other, but what they will ask of the learner's powers may be
known before (`ahead`): head matrices of tasks, chunks of a ranking. Workers compute it, and the rounds find it.

Rules. State is a pydantic model of plain data; a method keeps nothing on itself. `rng` is made afresh for each call from (seed,
number of the call), so nothing about randomness needs saving. A method never imports torch and never sees *report*: it is maths
and decisions. It must not depend on the order of the candidates in the suite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

import numpy as np
from pydantic import BaseModel, ConfigDict, model_validator

from sidequest.errors import SettingsError
from sidequest.learning.protocol import Learner, Piece
from sidequest.recipe import Phase, Recipe
from sidequest.settings import Checked, Settings, parse
from sidequest.tasks.pool import Pool


class State(Checked):
    """Base of method states: plain data that survives JSON exactly."""

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="constants")


class NoSettings(Settings):
    """For methods without settings."""


class PaperSettings(Settings):
    """Of a method whose defaults differ from its paper's values: a class lists those in `PUBLISHED`, and one that inherits from
    several has all of theirs.

    as_published: the paper's value for every setting that is not given.
    """

    PUBLISHED: ClassVar[dict[str, Any]] = {}

    as_published: bool = False

    @model_validator(mode="before")
    @classmethod
    def _published(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("as_published") is not True:
            return values
        listed = [vars(base).get("PUBLISHED", {}) for base in reversed(cls.__mro__)]
        published = {name: value for each in listed for name, value in each.items() if name in cls.model_fields}
        return {**published, **values}


class Plan(BaseModel):
    """A training run that a method asks for: phases and a seed. Its score is the primary's best on *select*.

    Attributes:
        phases: What to train on.
        seed: Of the training.
        label: Shown while it runs; it does not decide the score.
        note: Plain data that the method wants back in `tell`; it does not decide the score either.
        measure: `metric`: the best model is kept, and its metric is the score. `truth`: a probe. The run goes to its end, and
            the score is the mean log-likelihood of the truth of *select*'s rows after one temperature, over the last
            evaluations; the result then has it for each row. It is continuous and bounded, so a short run on few rows says more
            by it. `read-out`: nothing is trained; the same of the plain linear read-out of the model's features, where it has
            one.
        hold_out: Of a `truth` plan: this many rows of the primary's train, the same in every run, are not learned from; the
            result has them too, after those of *select*.
        permuted: Tasks whose train targets are shuffled among their rows, with the seed of the shuffle: a control that shows
            what any training beside the primary does. It exists only while the run lasts.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    phases: tuple[Phase, ...]
    seed: int = 0
    label: str = ""
    note: dict[str, Any] = {}
    measure: Literal["metric", "truth", "read-out"] = "metric"
    hold_out: int = 0
    permuted: dict[str, int] = {}


SettingsT = TypeVar("SettingsT", bound=Settings)
StateT = TypeVar("StateT", bound=State)


class Method(ABC, Generic[SettingsT, StateT]):
    """A selection method with its settings; see the module's docstring for the lifecycle.

    Args:
        settings: The method's own settings object.
        seed: Decides every draw of the method.
        **named: Settings by name instead: `AutoSeM(trials=8)`.

    Attributes:
        name: What it is called on the command line: small letters and digits with single hyphens between.
        summary: One line for `sidequest methods`.
        paper: Whose method it is.
        cost: What a decision costs, in single-task training runs.
        returns: What it decides: `tasks`, `mixture`, `weights`, `rows`.
        requires: The powers that a learner must have, as protocols.
        trains_model: Whether the model in the learner is itself a result.
        anytime: Whether the recipe means something after any number of calls.
        Settings: The class of its settings.
        State: The class of its state.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str] = ""
    cost: ClassVar[str] = "0x"
    returns: ClassVar[str] = "tasks"
    requires: ClassVar[tuple[type, ...]] = ()
    trains_model: ClassVar[bool] = False
    anytime: ClassVar[bool] = False
    Settings: ClassVar[type[Settings]] = NoSettings
    State: ClassVar[type[State]]

    def __init__(self, settings: SettingsT | None = None, *, seed: int = 0, **named: Any) -> None:
        """`AutoSeM(trials=8)`: settings by name, or as the method's own settings object."""
        if settings is not None and named:
            raise SettingsError(f"method {self.name!r}: settings by name or as an object, not both; found both")
        given = parse(self.Settings, named, f"method {self.name!r}") if settings is None else settings
        if not isinstance(given, self.Settings):
            raise SettingsError(
                f"method {self.name!r}: its settings are of the class {self.Settings.__name__}, found {given!r}"
            )
        self.settings: SettingsT = cast(SettingsT, given)
        self.seed = seed
        self.budget: float | None = (
            None  # x that the user allows; a method whose single plans are large should plan by it
        )

    def __repr__(self) -> str:
        given = self.settings.model_dump(exclude_defaults=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @abstractmethod
    def start(self, pool: Pool, rng: np.random.Generator) -> StateT:
        """The state before any work."""

    def ask(self, state: StateT, n: int) -> list[Plan]:
        """The next training runs, up to `n`, that are wanted whatever the scores of those before them. Empty: call `round`."""
        return []

    def tell(self, state: StateT, plan: Plan, score: float) -> StateT:
        """The state after the score on *select* of the first plan of `ask` is known."""
        raise TypeError(f"{self.name} asks for no trials")

    def tell_rows(self, state: StateT, plan: Plan, score: float, rows: np.ndarray | None) -> StateT:
        """As `tell`, with the log-likelihood of the truth of each row, float64 [n], for plans measured by it."""
        return self.tell(state, plan, score)

    def round(self, state: StateT, learner: Learner, rng: np.random.Generator) -> StateT:
        """The state after one small stretch of work on the learner."""
        raise TypeError(f"{self.name} has no rounds")

    def ahead(self, state: StateT) -> Sequence[Piece]:
        """Pieces of work that the rounds to come will ask the learner's powers for, whatever else happens. They are independent
        of each other, so workers compute them at the same time; a round then finds them, and is charged as if it had not."""
        return ()

    def improved(self, state: StateT) -> bool:
        """For a method that trains the model: whether the last round left the best model so far, to be kept."""
        return False

    @abstractmethod
    def done(self, state: StateT) -> bool: ...

    @abstractmethod
    def recipe(self, state: StateT) -> Recipe:
        """The decision; the driver adds cost and provenance."""

    def total(self, state: StateT) -> int | None:
        """How many rounds and trials there will be, if known, for the progress bar."""
        return None

    def journal(self, state: StateT) -> dict[str, Any]:
        """What the last round showed, for the journal and the progress line; small and JSON-able."""
        return {}

    def artifacts(self, state: StateT) -> dict[str, bytes]:
        """Files beside the recipe that others can use again (logs, matrices), by their path in the run directory. A method
        names and fills them, the driver writes them when the method is done."""
        return {}
