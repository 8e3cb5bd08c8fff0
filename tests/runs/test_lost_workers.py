"""Every kind of job whose worker is lost in the middle: it runs again, is named, and the result has the same bytes. Every kind
that hangs: it is ended, and what is said names it."""

import json
from pathlib import Path

import pytest

from sidequest.errors import SidequestError
from sidequest.runs.oracle import oracle
from sidequest.runs.scoring import Truth, judge
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup
from sidequest.runs.tuning import tune
from sidequest.search.executors import Executor, WorkerJournal
from sidequest.tasks.digits import digits_suite
from tests.helpers.tiny_suites import tiny_setup
from tests.helpers.trouble import plant
from tests.runs.test_pieces import METHODS as PIECES
from tests.runs.test_pieces import frozen_setup, tasks

pytestmark = pytest.mark.slow

ROWS = {"top-left": 60, "parity": 60, "large": 60, "bottom-right": 0, "ink": 0, "shuffled": 0}


def small(epochs=2):
    return Setup.of(digits_suite(0, rows=ROWS, select_rows=20, report_rows=40), {}, {"epochs": epochs})


def trial(place, workers, encoder):
    select(small(), "task-modelling", settings={"subsets": 3}, directory=place, workers=workers)
    return (place / "recipe.json").read_bytes()


def subset(place, workers, encoder):
    place.mkdir(parents=True, exist_ok=True)
    oracle(small(), [0, 1], place / "truth.json", command="", suite="digits", workers=workers)
    return (place / "truth.json").read_bytes()


def choice(place, workers, encoder):
    table = oracle(small(), [0, 1], place.parent / "truth.json", command="", suite="digits")
    judged = judge(Truth("truth", table, small()), ["heu-size", "all"], [0], directory=place, workers=workers)
    return json.dumps([each.model_dump(mode="json") for each in judged.judged]).encode()


def tuning(place, workers, encoder):
    return tune(small(), 6, workers=workers, directory=place).model_dump_json().encode()


def heads(place, workers, encoder):
    select(
        tiny_setup(encoder, tasks()),
        "gradts-thres",
        settings=PIECES["gradts-thres"][0],
        directory=place,
        workers=workers,
    )
    return (place / "recipe.json").read_bytes()


def ranking(place, workers, encoder):
    select(
        tiny_setup(encoder, tasks()), "similarity", settings=PIECES["similarity"][0], directory=place, workers=workers
    )
    return (place / "recipe.json").read_bytes()


def encoding(place, workers, encoder):
    select(frozen_setup(encoder), "heu-size", directory=place, workers=workers)
    return (place / "recipe.json").read_bytes()


JOBS = {  # the function that workers call, and how labels of its jobs begin
    trial: ("sidequest.runs.selecting", "_run_plan", ""),
    subset: ("sidequest.runs.oracle", "run_subset", "{"),
    choice: ("sidequest.runs.scoring", "judge_one", ""),
    tuning: ("sidequest.runs.tuning", "train_one", "tuning "),
    heads: ("sidequest.runs.pieces", "_make", "heads of "),
    ranking: ("sidequest.runs.pieces", "_make", "ranking of "),
    encoding: ("sidequest.runs.encoding", "_encode", "encoding "),
}
each_kind = pytest.mark.parametrize("work", JOBS, ids=lambda work: work.__name__)


def lines(place: Path):
    path = place / WorkerJournal.FILE
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@each_kind
def test_a_job_whose_worker_is_lost_runs_again_and_is_named(tmp_path, monkeypatch, encoder, work):
    from sidequest.models import states

    monkeypatch.setattr(states, "batch_tokens", lambda device: 200)  # several batches to encode
    module, name, begins = JOBS[work]
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache-alone"))
    alone = work(tmp_path / "alone" / "run", 1, encoder)
    plant(monkeypatch, module, name, "kill", tmp_path / "killed-once")
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache-lost"))
    found = work(tmp_path / "lost" / "run", Executor(2), encoder)
    assert (tmp_path / "killed-once").exists()  # the control: it did happen
    assert found == alone
    lost = [line["job"] for line in lines(tmp_path / "lost" / "run") if line["event"] == "lost"]
    assert len(lost) == 1
    assert lost[0].startswith(begins)
    assert not lines(tmp_path / "alone" / "run")


@each_kind
def test_a_job_that_hangs_is_ended_and_named(tmp_path, monkeypatch, encoder, work):
    from sidequest.models import states

    monkeypatch.setattr(states, "batch_tokens", lambda device: 200)
    module, name, begins = JOBS[work]
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    plant(monkeypatch, module, name, "hang", tmp_path / "hung-once")
    (tmp_path / "run").mkdir()
    if work is choice:  # the others are judged all the same
        judged = json.loads(work(tmp_path / "run", Executor(2, timeout=20), encoder))
        assert len(judged) == 1
    else:
        with pytest.raises(SidequestError, match="ran longer than 20 s and was ended"):
            work(tmp_path / "run", Executor(2, timeout=20), encoder)
    (failed,) = [line for line in lines(tmp_path / "run") if line["event"] == "failed"]
    assert failed["job"].startswith(begins)
    assert (tmp_path / "hung-once").exists()
    assert work(tmp_path / "run", Executor(2, timeout=20), encoder)  # the same call goes on
