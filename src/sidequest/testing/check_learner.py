"""The contract of a learner (`sidequest.learning.protocol.Learner`), as one function."""

from __future__ import annotations

import multiprocessing
import pickle
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from sidequest.errors import SidequestError
from sidequest.learning.protocol import Learner


def check_learner(
    make: Callable[[int], Learner],
    *,
    make_with: Callable[[Sequence[str], int], Learner] | None = None,
    n_batches: int = 3,
    fresh_process: bool = True,
) -> None:
    """Check that learners made by `make(seed)` keep the contract. Each seed must give a learner that has not been trained.

    Args:
        make: Makes a learner from a seed. A module-level function (or `functools.partial` of one), so that a fresh process
            finds it.
        make_with: Makes a learner from some of the candidates and a seed; with it, it is also checked that training does not
            depend on which other tasks there are.
        n_batches: How many batches are trained at a time.
        fresh_process: Whether a learner that was saved here is loaded in a fresh process, where it must train on to the same
            bits.
    """
    _is_a_learner(make(0))
    _looks_without_touching(make, n_batches)
    _seeds_decide(make, n_batches)
    _restores_exactly(make(0), n_batches)
    _saves_and_loads(make, n_batches)
    if fresh_process:
        _continues_in_a_fresh_process(make, n_batches)
    _trains_in_parts(make, n_batches)
    _counts(make(0), n_batches)
    _refuses_unknown_names(make(0))
    if make_with is not None:
        _ignores_other_tasks(make, make_with, n_batches)


PLAIN_FILES = {".json", ".safetensors", ".npy", ".npz"}
LONGEST_EPOCH = 5000  # rows; a longer one is not worth the time of a check


def _train_all(learner: Learner, n_batches: int) -> list[float]:
    return [loss for task in learner.tasks for loss in learner.train(task, n_batches)]


def _scores(learner: Learner) -> list[float]:
    return [learner.evaluate(task) for task in learner.tasks]


def _is_a_learner(learner: Learner) -> None:
    assert isinstance(learner, Learner), f"{type(learner).__name__} lacks a part of the Learner protocol"
    assert learner.primary in learner.tasks, "the primary is not among the tasks"
    assert set(learner.sizes) == set(learner.tasks), "`sizes` must name every task"
    assert all(learner.epoch_batches(task) >= 1 for task in learner.tasks), "an epoch has at least one batch"


def _seeds_decide(make: Callable[[int], Learner], n_batches: int) -> None:
    one, two = make(1), make(0).fresh(1)
    assert _train_all(one, n_batches) == _train_all(two, n_batches), (
        "equal seeds must give equal losses, also by `fresh`"
    )
    assert _scores(one) == _scores(two), "equal seeds and equal training must give equal scores"
    base = make(0)
    other = base.fresh(1)
    before = _scores(base)
    _train_all(other, n_batches)
    assert _scores(base) == before, "a learner made by `fresh` shares state with the one that made it"
    assert other.meter is base.meter, "a learner made by `fresh` must count on the meter of the one that made it"


def _restores_exactly(learner: Learner, n_batches: int) -> None:
    learner.begin(4 * n_batches * len(learner.tasks))
    _train_all(learner, n_batches)
    snapshot = learner.snapshot()
    first = (_train_all(learner, n_batches), _scores(learner))
    for time in ("", " a second time: training has changed the snapshot"):
        learner.restore(snapshot)
        again = (_train_all(learner, n_batches), _scores(learner))
        assert first == again, (
            f"train → restore → train must be bit-identical (weights, optimiser, schedule, order, random state){time}"
        )
    weights, scores = learner.snapshot(weights_only=True), _scores(learner)
    _train_all(learner, n_batches)
    learner.restore(weights)
    assert _scores(learner) == scores, "restoring weights must bring back the predictions"


def _saves_and_loads(make: Callable[[int], Learner], n_batches: int) -> None:
    learner, other, earlier = make(0), make(0), make(0)
    learner.begin(4 * n_batches * len(learner.tasks))
    _train_all(learner, n_batches)
    snapshot, scores = learner.snapshot(), _scores(learner)
    _train_all(learner, n_batches)
    with tempfile.TemporaryDirectory() as place:
        now, then = Path(place) / "now", Path(place) / "then"
        learner.save(now)
        learner.save(then, snapshot)
        kinds = {path.suffix for path in Path(place).rglob("*") if path.is_file()}
        other.load(now)
        earlier.load(then)
    assert kinds <= PLAIN_FILES, f"a learner saves plain data ({', '.join(sorted(PLAIN_FILES))}), found {sorted(kinds)}"
    assert _scores(earlier) == scores, (
        "`save(directory, snapshot)` must save the snapshot, not the learner as it is now"
    )
    assert _scores(learner) == _scores(other), "a loaded learner must give the scores of the saved one"
    assert _train_all(learner, n_batches) == _train_all(other, n_batches), (
        "a loaded learner must train on as the saved one"
    )


def _continues_in_a_fresh_process(make: Callable[[int], Learner], n_batches: int) -> None:
    try:
        pickle.dumps(make)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"`make` must be a module-level function, so that a fresh process finds it ({error}); "
            "`fresh_process=False` leaves this check out"
        ) from None
    # A forked child of a server that has imported torch and done nothing else: as good as new, and quick.
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if hasattr(context, "set_forkserver_preload"):
        context.set_forkserver_preload(["sidequest.learning.torch.learner"])
    learner = make(0)
    learner.begin(4 * n_batches * len(learner.tasks))
    _train_all(learner, n_batches)
    with tempfile.TemporaryDirectory() as place:
        learner.save(Path(place))
        with ProcessPoolExecutor(1, context) as pool:
            elsewhere = pool.submit(_load_and_train, make, Path(place), n_batches).result()
    assert elsewhere == (_train_all(learner, n_batches), _scores(learner)), (
        "a learner saved here and loaded in a fresh process must train on to the same losses and scores: is everything that "
        "decides the next step in the files, memory layouts included?"
    )


def _load_and_train(make: Callable[[int], Learner], place: Path, n_batches: int) -> tuple[list[float], list[float]]:
    learner = make(0)
    learner.load(place)
    return _train_all(learner, n_batches), _scores(learner)


def _looks_without_touching(make: Callable[[int], Learner], n_batches: int) -> None:
    looked, left_alone = make(0), make(0)
    assert _scores(looked) == _scores(looked), "evaluating the same model twice must give the same score"
    assert _train_all(looked, n_batches) == _train_all(left_alone, n_batches), "evaluation must not change training"


def _trains_in_parts(make: Callable[[int], Learner], n_batches: int) -> None:
    whole, parts = make(0), make(0)
    for learner in (whole, parts):
        learner.begin(4 * n_batches)
    expected = whole.train(whole.primary, 2 * n_batches)
    losses = [loss for n in (1, 2 * n_batches - 1) for loss in parts.train(parts.primary, n)]
    assert losses == expected, "training n batches at once or in parts must be the same"


def _counts(learner: Learner, n_batches: int) -> None:
    task = learner.primary
    learner.train(task, n_batches)
    learner.evaluate(task)
    count = learner.meter.of(task)
    assert count.batches == n_batches, f"the meter must count {n_batches} batches, found {count.batches}"
    assert count.evaluations == 1, f"the meter must count 1 evaluation, found {count.evaluations}"
    other = min(learner.tasks, key=lambda name: (name == task, learner.sizes[name]))
    if other != task and learner.sizes[other] <= LONGEST_EPOCH:  # from the beginning of its data to the end
        learner.train(other, learner.epoch_batches(other))
        seen, rows = learner.meter.of(other).examples, learner.sizes[other]
        assert seen == rows, f"an epoch of {other!r} has {rows} rows, the meter counts {seen} examples"


def _refuses_unknown_names(learner: Learner) -> None:
    wrong = learner.primary + "x"
    message = ""
    try:
        learner.train(wrong, 1)
    except SidequestError as error:
        message = str(error)
    assert message, f"training on the unknown task {wrong!r} must raise a SidequestError"
    assert learner.primary in message, "the message about an unknown task must give the nearest name"


def _ignores_other_tasks(
    make: Callable[[int], Learner], make_with: Callable[[Sequence[str], int], Learner], n_batches: int
) -> None:
    everything = make(0)
    candidates = [task for task in everything.tasks if task != everything.primary]
    tasks = [everything.primary, *candidates[-1:]]
    alone = make_with(tasks[1:], 0)
    assert sorted(alone.tasks) == sorted(tasks), f"`make_with` was asked for {tasks}, it made {alone.tasks}"
    results = []
    for learner in (everything, alone):
        learner.begin(4 * n_batches)
        losses = [learner.train(task, n_batches) for task in tasks]
        results.append((losses, [learner.evaluate(task) for task in tasks]))
    assert results[0] == results[1], (
        "training must not depend on tasks that are not trained on: make initial values and data orders functions of "
        "(seed, task name), and leave parameters without a gradient alone"
    )
