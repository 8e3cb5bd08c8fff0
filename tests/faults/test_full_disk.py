"""A disk that is full at any write of any command: one sentence, nothing lost, and the same bytes when there is room again."""

from __future__ import annotations

import errno
import shutil

import pytest

from sidequest.errors import DiskError, WorldError
from sidequest.runs import cells, comparing, oracle, scoring
from tests.faults.cases import CHEAP
from tests.faults.killing import PLAIN_PAGE, Kill, points
from tests.faults.runner import differences, left_by, temporary
from tests.faults.test_kills import EVERY, SEED
from tests.faults.tracer import GROWING

QUICK = {
    "images-oracle": 1,
    "images-score": 1,
    "images-tune": 1,
    "tuned-train": 1,
}

SAYS = ("sidequest: ", "no page: ")  # a run that lacks nothing but its page has not failed


def places(case, count):
    """Operations that need room, of the command and of its workers."""
    growing = {
        who: {int(line.split(" ", 2)[0]) for line in lines if line.split(" ", 2)[1] in GROWING}
        for who, lines in (("parent", case.operations), ("worker", case.worker_operations))
    }
    found = [kill for kill in points(case, 40 * count, SEED + 2) if kill.at in growing[kill.of]]
    return found[:count]


def full_at(killer, case, kill, planted=PLAIN_PAGE):
    """What is wrong when every write from an operation on finds no room; None: nothing."""
    place = case.begin(f"full-{kill.of}-{kill.at}")
    where = f"{case.name}: no room from operation {kill.at} of the {kill.of} on"
    try:
        plan = {"at": kill.at, "do": "ENOSPC", "of": kill.of}
        done = killer.killed.run(place, case.arguments, plan, planted=planted)
        said = [line for line in done.output.splitlines() if line.startswith(SAYS)]
        if done.traceback or done.left:
            return f"{where}: a traceback or a process left:\n{done.output}"
        if done.code == 0 and kill.of == "parent" and not said:
            return f"{where}: nothing was said:\n{done.output}"
        if done.code == 0 and any("no room" not in line for line in said):
            return f"{where}: something else was said:\n{done.output}"
        if done.code not in (0, 1) or (done.code == 1 and (len(said) != 1 or "no room" not in said[0])):
            return f"{where}: ended with {done.code}:\n{done.output}"
        done = killer.resumed.run(place, case.arguments, planted=PLAIN_PAGE)
        if done.code != 0 or done.traceback:
            return f"{where}: with room again it ended with {done.code}:\n{done.output}"
        if other := [*differences(case.whole, left_by(place)), *temporary(place)]:
            return f"{where}: other bytes or left over: {', '.join(other)}"
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return None


def check(killer, case, count, record_property):
    killer.prepare(case)
    chosen = places(case, count)
    problems = [found for kill in chosen if (found := full_at(killer, case, kill))]
    record_property("full disks", len(chosen))
    assert not problems, "\n".join(problems)


def test_a_full_disk_at_some_write_of_other_commands(quick_killer, every_case, record_property):
    for name, count in QUICK.items():
        check(quick_killer, every_case[name], count, record_property)


def test_a_command_that_passes_over_a_full_disk_is_found(quick_killer, every_case):
    """The control."""
    case = every_case["images-heu-size"]
    quick_killer.prepare(case)
    at = next(int(line.split(" ", 2)[0]) for line in case.operations if " open " in line and ".recipe.json" in line)
    careless = (*PLAIN_PAGE, "tests.faults.plants:passes_over_a_full_disk")
    assert full_at(quick_killer, case, Kill(at, "ENOSPC"), careless) is not None
    assert full_at(quick_killer, case, Kill(at, "ENOSPC")) is None


@pytest.mark.faults
@pytest.mark.parametrize("name", EVERY)
def test_a_full_disk_at_any_write(name, killer, every_case, record_property):
    check(killer, every_case[name], 1 if name.partition("-")[2] in CHEAP else 3, record_property)


@pytest.mark.parametrize("failed", [cells.attempt, comparing._gone, oracle._failed, scoring._failed])
@pytest.mark.parametrize(
    "said", [OSError(errno.ENOSPC, "No space left on device", "x"), DiskError("x: there is no room")]
)
def test_a_job_without_room_is_not_a_method_that_failed(failed, said, tmp_path, monkeypatch):
    """Else a table would be written in which it is missing, or has lost. What else goes wrong fails alone."""
    job = cells.Job("heu-size", {}, 0, tmp_path)

    def outcome(error):
        if failed is not cells.attempt:
            return failed(job, error)
        monkeypatch.setattr(cells, "run_job", lambda *_: (_ for _ in ()).throw(error))
        return cells.attempt(None, job)

    with pytest.raises(DiskError, match="no room"):
        outcome(said)
    for other in (
        ValueError("by itself"),
        WorldError("its worker was lost"),
        OSError(errno.ENOENT, "no such file", "x"),
    ):
        assert outcome(other)
