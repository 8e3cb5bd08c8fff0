"""Progress: events with names, as bars on a terminal and as lines in a log."""

from __future__ import annotations

import io
from typing import Any

import pytest

from sidequest import progress as module
from sidequest.progress import Lines, Progress, Several, duration, show_progress


class Clock:
    """A clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)


def test_a_log_gets_a_line_every_so_many_seconds_with_cost_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, out = Clock(monkeypatch), io.StringIO()
    lines = Lines(seconds=20, file=out)
    for done in range(1, 7):
        clock.now += 10
        lines.job(done, 30, f"heu-size seed {done}: 0.8{done}", None, 1.5 * done)
    assert out.getvalue().splitlines() == [
        "jobs 2 of 30, about 5 min left (3.0x  heu-size seed 2: 0.82)",
        "jobs 4 of 30, about 4 min left (6.0x  heu-size seed 4: 0.84)",
        "jobs 6 of 30, about 4 min left (9.0x  heu-size seed 6: 0.86)",
    ]


def test_what_goes_on_inside_a_round_stands_in_the_same_line(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, out = Clock(monkeypatch), io.StringIO()
    lines = Lines(seconds=20, file=out)
    lines.round(1, None, {"score": 0.71234, "task": "nli"}, 1.04)
    clock.now += 21
    lines.training(120, 400, 0.5, "single")
    clock.now += 5
    lines.encoding(3, 9)
    (line,) = out.getvalue().splitlines()
    assert line == "choosing 1 (1.0x  score 0.712, task nli); training 120 of 400 (single best 0.500)"


def test_what_runs_is_named_and_where_if_it_is_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, out = Clock(monkeypatch), io.StringIO()
    lines = Lines(seconds=20, file=out)
    lines.running({"process 4711": "size seed 0", "node-3, process 9": "all seed 1"})
    first = "at work 2 (size seed 0; all seed 1 on node-3, process 9)\n"
    assert out.getvalue() == first  # at once: a job may take an hour
    lines.running({"process 4711": "size seed 1"})
    assert out.getvalue() == first
    clock.now += 21
    lines.running({"process 4711": "size seed 2"})
    assert out.getvalue() == first + "at work 1 (size seed 2)\n"


def test_several_listeners_hear_every_event() -> None:
    heard: list[tuple[Any, ...]] = []

    class Listener(Progress):
        def encoding(self, done: int, total: int) -> None:
            heard.append(("encoding", done, total))

        def training(self, *event: Any) -> None:
            heard.append(("training", *event))

        def round(self, *event: Any) -> None:
            heard.append(("round", *event))

        def job(self, *event: Any) -> None:
            heard.append(("job", *event))

    both = Several(Listener(), Progress(), Listener())
    both.encoding(1, 2)
    both.training(1, 2, None)
    both.round(1, None, {}, 0.5)
    both.job(1, 2, "a", None, 0.5)
    assert [event[0] for event in heard] == ["encoding"] * 2 + ["training"] * 2 + ["round"] * 2 + ["job"] * 2


def test_without_a_terminal_lines_are_written_and_with_one_bars(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with show_progress() as progress:
        assert isinstance(progress, Lines)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with show_progress() as progress:
        assert isinstance(progress, module.Bar)
        progress.encoding(1, 3)
        progress.round(2, 5, {"score": 0.5}, 1.25)
        progress.encoding(3, 3)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(7.6, "8 s"), (89, "89 s"), (600, "10 min"), (5399, "90 min"), (9000, "2.5 h")]
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
