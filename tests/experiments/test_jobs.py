"""Stored jobs: what counts, what is run, and how another version of the code is shown equal."""

import time

import pytest

from experiments import jobs
from experiments.jobs import ExperimentJob, ResultStore, counts, repeat, run_missing
from sidequest.errors import SettingsError
from sidequest.files import read_json

RAN = []


def run(shared, job, needed):
    RAN.append(job.name)
    return {"report": shared + job.seed + sum(each["report"] for each in needed.values())}


@pytest.fixture
def store(tmp_path):
    RAN.clear()
    return ResultStore("tiny", "small", tmp_path)


def test_finished_jobs_are_read_and_not_run_again(store):
    some = [ExperimentJob("m", "t", seed, {"rows": 5}) for seed in (0, 1)]
    found = run_missing(run, 0.5, some, store)
    assert [kept["report"] for kept in found.values()] == [0.5, 1.5]
    assert run_missing(run, 9.0, some, store) == found
    assert RAN == ["t-m-0", "t-m-1"]
    kept = read_json(store.file(some[0]))
    assert {"method", "task", "seed", "seconds", "cpu_seconds", "plan", "code", "date"} <= {*kept}


def test_seconds_of_the_processor_leave_out_what_a_job_waits(store):
    found = run_missing(wait_and_work, None, [ExperimentJob("m", "t", 0)], store)["t-m-0"]
    assert found["seconds"] >= 0.4
    assert 0.1 <= found["cpu_seconds"] <= found["seconds"] - 0.2


def wait_and_work(shared, job, needed):
    time.sleep(0.3)
    busy = time.process_time()
    while time.process_time() < busy + 0.1:
        pass
    return {"report": 0.0}


def test_other_settings_and_other_code_do_not_count(store, monkeypatch):
    job = ExperimentJob("m", "t", 0, {"rows": 5}, "autosem")
    run_missing(run, 0.0, [job], store)
    assert store.state(ExperimentJob("m", "t", 0, {"rows": 6}, "autosem")) == "other settings"
    monkeypatch.setattr(jobs, "selection_code_version", lambda paper: "new")
    assert store.state(job) == "other code"
    assert store.read(job) is None
    assert counts(store, [job, ExperimentJob("m", "t", 1, paper="autosem")]) == {
        "done": 0,
        "other code": 1,
        "other settings": 0,
        "missing": 1,
    }
    run_missing(run, 0.0, [job], store)
    assert len(RAN) == 2


def test_what_only_trains_does_not_depend_on_the_code_of_methods(store, monkeypatch):
    job = ExperimentJob("single", "t", 0)
    run_missing(run, 0.0, [job], store)
    monkeypatch.setattr(jobs, "selection_code_version", lambda paper: "new")
    assert store.state(job) == "done"
    monkeypatch.setattr(jobs, "training_code_version", lambda: "new")
    assert store.state(job) == "other code"


def test_a_repetition_with_the_same_scores_makes_old_code_count_for_its_method_alone(store, monkeypatch):
    some = [ExperimentJob(method, "t", seed, paper="autosem") for method in ("a", "b") for seed in (0, 1)]
    run_missing(run, 0.5, some, store)
    monkeypatch.setattr(jobs, "selection_code_version", lambda paper: "new")
    assert not repeat(run, 0.7, some, store, "a")  # other scores
    assert {store.state(job) for job in some} == {"other code"}
    assert repeat(run, 0.5, some, store, "a")
    assert [store.state(job) for job in some] == ["done", "done", "other code", "other code"]
    monkeypatch.setattr(jobs, "selection_code_version", lambda paper: "newer")
    assert store.state(some[0]) == "other code"
    assert repeat(run, 0.5, some, store, "a")
    assert store.state(some[1]) == "done"
    with pytest.raises(SettingsError, match="no stored job of 'c'"):
        repeat(run, 0.5, some, store, "c")


def test_a_job_that_needs_another_is_repeated_with_the_stored_result(store, monkeypatch):
    first, second = ExperimentJob("learn", "t", 1), ExperimentJob("train", "t", 2, paper="autosem", needs="t-learn-1")
    run_missing(run, 0.5, [first, second], store)
    monkeypatch.setattr(jobs, "selection_code_version", lambda paper: "new")
    assert repeat(run, 0.5, [first, second], store, "train")
    assert store.state(second) == "done"
    store.file(first).unlink()
    with pytest.raises(SettingsError, match="no stored job of 'train'"):
        repeat(run, 0.5, [first, second], store, "train")


def test_the_last_bits_of_a_score_may_differ_from_those_of_another_processor(store, monkeypatch):
    job = ExperimentJob("a", "t", 0, paper="autosem")
    store.write(job, {"report": 0.1 + 0.2, "tasks": {"one": 0.3}}, seconds=1)
    monkeypatch.setattr(jobs, "selection_code_version", lambda paper: "new")
    for again, same in (({"one": 0.3000001}, False), ({"two": 0.3}, False), ({"one": 0.1 + 0.2}, True)):
        found = {"report": 0.3, "tasks": again}
        assert repeat(lambda shared, job, needed, found=found: found, None, [job], store, "a") is same


def test_what_is_repeated_is_of_other_code_though_a_job_of_todays_is_cheaper(store, monkeypatch):
    old, fresh = (ExperimentJob("a", "t", seed, paper="autosem") for seed in (0, 1))
    store.write(old, {"report": 0.5}, seconds=100)
    monkeypatch.setattr(jobs, "selection_code_version", lambda paper: "new")
    store.write(fresh, {"report": 1.5}, seconds=1)
    assert repeat(run, 0.5, [old, fresh], store, "a")
    assert RAN == ["t-a-0"]
    assert store.state(old) == "done"


def test_a_job_waits_for_what_it_needs_and_gets_its_result(store):
    first, second = ExperimentJob("learn", "t", 1), ExperimentJob("train", "t", 2, needs="t-learn-1")
    found = run_missing(run, 0.0, [second, first], store)
    assert RAN == ["t-learn-1", "t-train-2"]
    assert found["t-train-2"]["report"] == 3.0


def test_no_job_begins_after_the_minutes_are_over(store, monkeypatch):
    some = [ExperimentJob("m", "t", seed) for seed in range(4)]
    assert run_missing(run, 0.0, some, store, minutes=0.0) == {}
    clock = iter([0.0, 30.0, 61.0])  # the start, before the first job, before the second
    monkeypatch.setattr(jobs.time, "monotonic", lambda: next(clock))
    assert len(run_missing(run, 0.0, some, store, minutes=1.0)) == 1
    monkeypatch.undo()
    assert len(run_missing(run, 0.0, some, store, minutes=0.0)) == 1  # what there is
    assert len(run_missing(run, 0.0, some, store)) == 4
