"""Logs survive JSON and parquet exactly, and a broken file says what is wrong with it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from sidequest.errors import DataError, SettingsError
from sidequest.methods.policies.log import METADATA, STEP, PolicyLog, pack, read_log, read_logs, unpack

TASKS = ("rte", "mnli", "qqp")


def random_log(steps=200, seed=0, **changes) -> PolicyLog:
    rng = np.random.default_rng(seed)
    records = np.empty(steps, dtype=STEP)
    records["task"] = rng.integers(3, size=steps)
    records["propensity"] = rng.uniform(0.01, 1, steps)
    records["reward"], records["loss"] = rng.normal(size=steps), rng.gamma(1.0, size=steps)
    about = {"method": "exp3s", "policy": None, "settings": {"eta": 0.001}}
    fields = {"tasks": TASKS, "steps": records, "goal": "average", "reward": "prediction-gain", "about": about}
    return PolicyLog(**{**fields, **changes})


def test_packing_is_exact_and_blocks_join():
    steps = random_log().steps
    text = [pack(steps[:50]), pack(steps[50:51]), pack(steps[51:])]
    assert np.array_equal(unpack(json.loads(json.dumps(text))), steps)


def test_parquet_round_trip(tmp_path):
    log, path = random_log(), tmp_path / "log.parquet"
    path.write_bytes(log.to_parquet())
    again = read_log(path)
    assert np.array_equal(again.steps, log.steps)
    assert (again.tasks, again.goal, again.reward, again.about) == (log.tasks, log.goal, log.reward, log.about)
    assert again.digest == log.digest
    assert log.to_parquet() == random_log().to_parquet()


def test_others_can_read_the_file(tmp_path):
    log, path = random_log(), tmp_path / "log.parquet"
    path.write_bytes(log.to_parquet())
    table = pq.read_table(path)
    assert table.column_names == ["step", "task", "propensity", "reward", "loss"]
    assert table["step"].to_pylist() == list(range(1, 201))
    assert table["task"].to_pylist() == [TASKS[k] for k in log.steps["task"]]


def test_run_directories_are_searched_and_tasks_renumbered(tmp_path):
    (tmp_path / "run" / "logs").mkdir(parents=True)
    for number in (1, 2):
        (tmp_path / "run" / "logs" / f"{number}.parquet").write_bytes(random_log(seed=number).to_parquet())
    (tmp_path / "single.parquet").write_bytes(random_log(seed=3).to_parquet())
    order = ["mnli", "qqp", "rte"]
    logs = read_logs([str(tmp_path / "run"), str(tmp_path / "single.parquet")], order, "average")
    assert [log.digest for log in logs] == [random_log(seed=n).ordered_as(order).digest for n in (1, 2, 3)]
    assert [order[k] for k in logs[0].steps["task"]] == [TASKS[k] for k in random_log(seed=1).steps["task"]]


def rewritten(log: PolicyLog, path, change) -> None:
    path.write_bytes(log.to_parquet())
    pq.write_table(change(pq.read_table(path)), path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.replace_schema_metadata({}), "not a policy log"),
        (lambda table: table.drop_columns(["loss"]), "column 'loss' is missing"),
        (lambda table: table.slice(0, 0), "no steps"),
        (
            lambda table: table.replace_schema_metadata(
                {METADATA: table.schema.metadata[METADATA].replace(b'"version": 1', b'"version": 9')}
            ),
            "version 1",
        ),
        (
            lambda table: table.replace_schema_metadata(
                {METADATA: table.schema.metadata[METADATA].replace(b'"qqp"', b'"sst"')}
            ),
            "'qqp' is not among the log's tasks",
        ),
    ],
)
def test_broken_files_are_refused(tmp_path, change, message):
    path = tmp_path / "log.parquet"
    rewritten(random_log(), path, change)
    with pytest.raises(DataError, match=message) as caught:
        read_log(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("column", "value"), [("propensity", 0.0), ("propensity", 1.5), ("reward", np.nan)])
def test_impossible_numbers_are_refused_with_their_line(tmp_path, column, value):
    log, path = random_log(), tmp_path / "log.parquet"
    log.steps[column][6] = value
    path.write_bytes(log.to_parquet())
    with pytest.raises(DataError, match=rf"line 7: .*{column}.* found {value}"):
        read_log(path)


def test_logs_of_other_tasks_or_goals_are_refused(tmp_path):
    path = tmp_path / "log.parquet"
    path.write_bytes(random_log().to_parquet())
    with pytest.raises(DataError, match=r"lacks \['cola'\] and has besides \['qqp'\]"):
        read_logs([str(path)], ["rte", "mnli", "cola"], "average")
    with pytest.raises(DataError, match="goal 'average'"):
        read_logs([str(path)], TASKS, "primary")


def test_a_place_without_logs_says_who_writes_them(tmp_path):
    with pytest.raises(SettingsError, match=r"has no logs/\*\.parquet"):
        read_logs([str(tmp_path)], TASKS, "average")
    with pytest.raises(SettingsError, match="no such file"):
        read_logs([str(tmp_path / "absent")], TASKS, "average")
    (tmp_path / "text.parquet").write_text("not parquet")
    with pytest.raises(DataError, match="not a readable parquet file"):
        read_logs([str(tmp_path / "text.parquet")], TASKS, "average")
