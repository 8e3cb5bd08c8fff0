"""Head matrices, chunks of a ranking and states of texts as jobs of workers: the recipes of one process, byte for byte."""

import json

import numpy as np
import pytest

from sidequest.learning.protocol import HeadMatrix, RankedChunk, Warmup
from sidequest.methods.base import Pool
from sidequest.model_settings import PooledSettings
from sidequest.progress import Progress
from sidequest.runs.comparing import compare
from sidequest.runs.luggage import Luggage
from sidequest.runs.selecting import make_method, select
from sidequest.runs.setup import Setup
from sidequest.search.executors import Executor, WorkerJournal
from sidequest.tasks.suite import Suite
from tests.helpers.tiny_suites import task, tiny_setup

METHODS = {
    "gradts-thres": ({"warmup_epochs": 1, "threshold": 0.0}, "heads of"),
    "similarity": ({"rows": 10, "discriminator_epochs": 1, "chunk": 8, "count": 20}, "ranking of"),
}


def tasks():
    return [task("aim"), task("near"), task("far")]


def recipe(monkeypatch, tmp_path, encoder, name, workers, seed=0):
    place = tmp_path / f"{name}-{workers}-{seed}"
    monkeypatch.setenv("SIDEQUEST_CACHE", str(place / "cache"))
    setup = tiny_setup(encoder, tasks())
    select(setup, name, settings=METHODS[name][0], seed=seed, directory=place / "run", workers=workers)
    return (place / "run" / "recipe.json").read_bytes()


def jobs_of(directory):
    path = directory / WorkerJournal.FILE
    return [json.loads(line)["job"] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_pieces_of_rounds_run_on_workers_and_change_nothing(tmp_path, monkeypatch, encoder, name):
    one, two = (recipe(monkeypatch, tmp_path, encoder, name, workers) for workers in (1, 2))
    assert one == two
    done = [job for job in jobs_of(tmp_path / f"{name}-2-0" / "run") if job.startswith(METHODS[name][1])]
    assert len({*done}) >= 3
    assert not jobs_of(tmp_path / f"{name}-1-0" / "run")
    assert recipe(monkeypatch, tmp_path, encoder, name, 1, seed=1) != one  # the control
    heads = json.loads((tmp_path / f"{name}-2-0" / "run" / "selection.json").read_text()).get("heads", {})
    assert name == "similarity" or sorted(heads["computed"]) == ["aim", "far", "near"]


@pytest.mark.slow
def test_cells_find_the_head_matrices_that_they_share(tmp_path, monkeypatch, encoder):
    methods = {"gradts-thres": METHODS["gradts-thres"][0], "gradts-trial": {"warmup_epochs": 1}}
    for workers in (1, 2):
        monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / f"cache-{workers}"))
        compare(tiny_setup(encoder, tasks()), methods, [0], tmp_path / str(workers), workers=workers)
    one, two = ((tmp_path / name / "comparison.json").read_bytes() for name in ("1", "2"))
    assert one == two
    begun = [job for job in jobs_of(tmp_path / "2") if job.startswith("heads of")]
    assert sorted({*begun}) == ["heads of aim", "heads of far", "heads of near"]
    for method in methods:  # none was computed by a cell
        record = json.loads((tmp_path / "2" / method / "seed-0" / "selection.json").read_text())
        assert not record["heads"]["computed"]


def test_a_method_says_what_its_rounds_will_ask_for(encoder):
    setup = tiny_setup(encoder, tasks())
    pool: Pool = setup.pool
    heads = make_method("gradts-thres", {"warmup_epochs": 2}, 7)
    asked = heads.ahead(heads.start(pool, np.random.default_rng(0)))
    assert asked == [HeadMatrix(name, Warmup(2.0, None, 7)) for name in ("aim", "far", "near")]
    rows = make_method("similarity", METHODS["similarity"][0])
    state = rows.start(pool, np.random.default_rng(0))
    assert not rows.ahead(state)  # the discriminator comes first
    chunks = rows.ahead(state.model_copy(update={"trained": {}, "chunks": 1}))
    assert [(chunk.task, chunk.chunk) for chunk in chunks] == [
        (name, chunk) for name in ("far", "near") for chunk in range(4)
    ][1:]
    assert all(isinstance(chunk, RankedChunk) for chunk in chunks)
    assert not make_method("single").ahead(make_method("single").start(pool, np.random.default_rng(0)))


class Watching(Progress):
    def __init__(self):
        self.jobs = set()

    def running(self, jobs):
        self.jobs |= {*jobs.values()}


def frozen_setup(encoder):
    suite = Suite.of(tasks()[0], tasks()[1:], name="tiny")
    return Setup.of(suite, PooledSettings(encoder=str(encoder)), {"epochs": 1})


def states_of(setup):
    return {view: [part.tobytes() for part in packed] for view, packed in setup.family.packed_states().items()}


@pytest.mark.slow
def test_states_are_encoded_by_workers_to_the_same_bits(tmp_path, monkeypatch, encoder):
    from sidequest.models import states

    found, watching = [], Watching()
    monkeypatch.setattr(states, "batch_tokens", lambda device: 200)
    for workers in (1, 2):
        monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / f"cache-{workers}"))
        setup = frozen_setup(encoder)
        setup.prepare(watching, Executor(workers))
        found.append(states_of(setup))
        assert bool(watching.jobs) == (workers == 2)
    assert found[0] == found[1]
    assert any(len(parts[0]) for parts in found[0].values())


def test_states_travel_to_a_machine_without_the_disk(tmp_path, monkeypatch, encoder):
    from sidequest.models.states import FrozenEncoder

    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "here"))
    setup = frozen_setup(encoder)
    setup.prepare()
    luggage = Luggage.of(setup, Executor(2, "ray"))
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "there"))
    there = Luggage(frozen_setup(encoder), states=dict(luggage.states)).unpacked()
    monkeypatch.setattr(FrozenEncoder, "encode", lambda *given: pytest.fail("computed again"))
    there.prepare()
    there.learner(0)
    assert states_of(there) == states_of(setup)
    assert not Luggage.of(setup, Executor(2)).states  # workers of this machine find them
