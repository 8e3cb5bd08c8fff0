"""What the world does to a command: full and read-only disks, no permission, signals, a second process, a poor terminal.

Each ends in one sentence, keeps what was done before, and the same command goes on to the same bytes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.faults.killing import PLAIN_PAGE, points
from tests.faults.runner import CACHE, FOLDER, differences, left_by, place_environment, plain_environment, temporary
from tests.faults.test_kills import SEED

WHERE_DISKS_FILL = {
    "images-alphavil": r"checkpoints/selection/",
    "images-train": r"run/",
    "images-compare": r"run/",
    "frozen-auto": r"cache/states/",  # while texts are encoded
}


@pytest.fixture(scope="module")
def prepared(server, every_case, tmp_path_factory):
    """A case that has run once, by name."""
    base = tmp_path_factory.mktemp("world")

    def of(name):
        case = every_case[name]
        if not case.whole:
            case.prepare(server, base, PLAIN_PAGE)
        return case

    return of


def one_sentence(done, *words):
    assert not done.traceback, done.output
    said = [line for line in done.output.splitlines() if line.startswith("sidequest: ")]
    assert len(said) == 1, done.output
    assert all(word in said[0] for word in words), said[0]


def goes_on(server, case, place):
    """The same command again, when the world is well."""
    done = server.run(place, case.arguments, planted=PLAIN_PAGE)
    assert done.code == 0, done.output
    assert not differences(case.whole, left_by(place))
    assert not temporary(place)


@pytest.mark.parametrize("error", ["ENOSPC", pytest.param("EROFS", marks=pytest.mark.faults)])
@pytest.mark.parametrize("name", WHERE_DISKS_FILL)
def test_a_disk_that_fills_in_the_middle(name, error, server, prepared):
    """Every write fails from some operation on, as on a full or suddenly read-only disk."""
    case = prepared(name)
    lines = [line.split(" ", 2) for line in case.operations]
    numbers = [int(number) for number, _, path in lines if WHERE_DISKS_FILL[name] in path]
    place = case.begin(f"{error}-now")
    done = server.run(place, case.arguments, {"at": numbers[len(numbers) // 2], "do": error}, planted=PLAIN_PAGE)
    try:
        assert done.code == 1
        one_sentence(done, "no room" if error == "ENOSPC" else "read-only")
        goes_on(server, case, place)
    finally:
        shutil.rmtree(place)


@contextmanager
def small_disk(place: Path, kilobytes: int):
    """A disk of this size, or a skipped test."""
    place.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no right to mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize(
    ("name", "part", "kilobytes"),
    [
        ("images-alphavil", FOLDER, 900),
        ("images-train", FOLDER, 600),
        ("frozen-train", FOLDER, 40),
        ("images-compare", FOLDER, 120),
        ("frozen-auto", CACHE, 100),  # while texts are encoded
        pytest.param("images-score", FOLDER, 80, marks=pytest.mark.faults),
        pytest.param("images-tune", CACHE, 12, marks=pytest.mark.faults),
        pytest.param("images-oracle", CACHE, 20, marks=pytest.mark.faults),
        pytest.param("images-autosem", FOLDER, 40, marks=pytest.mark.faults),
        pytest.param("tuned-train", FOLDER, 80, marks=pytest.mark.faults),
        pytest.param("frozen-primaries", FOLDER, 100, marks=pytest.mark.faults),
    ],
)
def test_a_small_disk_is_full(name, part, kilobytes, server, prepared):
    """A real one: then what it holds is moved to a larger one, and the command goes on there."""
    case = prepared(name)
    place = case.begin("small")
    aside = place.with_name("aside")
    (place / part).mkdir(exist_ok=True)
    shutil.move(place / part, aside)
    try:
        with small_disk(place / part, kilobytes):
            shutil.copytree(aside, place / part, dirs_exist_ok=True)
            done = server.run(place, case.arguments, planted=PLAIN_PAGE)
            assert done.code == 1, done.output
            one_sentence(done, "no room")
            shutil.rmtree(aside)
            shutil.copytree(place / part, aside)
        shutil.rmtree(place / part)
        shutil.move(aside, place / part)
        goes_on(server, case, place)
    finally:
        shutil.rmtree(place)


def test_a_read_only_disk_is_told(server, prepared):
    case = prepared("images-single")
    place = case.begin("read-only")
    with small_disk(place / FOLDER, 100):
        subprocess.run(["mount", "-o", "remount,ro", str(place / FOLDER)], check=True)
        done = server.run(place, case.arguments, planted=PLAIN_PAGE)
    assert done.code in (1, 2)
    one_sentence(done, "run")


def test_a_directory_of_somebody_else_is_told(server, suites, prepared):
    if os.getuid() != 0:
        pytest.skip("needs root to become somebody else")
    case = prepared("images-single")
    place = case.begin("not-mine")
    place.chmod(0o755)
    for above in (*place.parents, suites / "images", *(suites / "images").parents):
        if above.stat().st_mode & 0o005 != 0o005:
            above.chmod(0o755)  # the tests' own folders, down to those of this test
    done = server.run(place, case.arguments, planted=(*PLAIN_PAGE, "tests.faults.plants:somebody_else"))
    assert done.code == 2, done.output
    one_sentence(done, "run")


# Signals and other processes


def start(place: Path, arguments, environment=None, **options):
    own = {**os.environ, **plain_environment(), **place_environment(place), **(environment or {})}
    return subprocess.Popen(
        [sys.executable, "-m", "sidequest", *arguments],
        cwd=place / FOLDER,
        env={name: value for name, value in own.items() if value},
        stdin=subprocess.DEVNULL,
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options},
    )


def wait_for(path: Path, process, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)


LONG = ("--set", "epochs=400")


@pytest.mark.parametrize(("name", "code"), [pytest.param("SIGINT", 130, marks=pytest.mark.faults), ("SIGTERM", 143)])
def test_a_signal_ends_a_run_with_a_sentence_and_it_goes_on(name, code, suites, tmp_path):
    """Rounds of αVIL until a checkpoint is there, then the signal."""
    (tmp_path / FOLDER).mkdir()
    arguments = ["select", str(suites / "images" / "suite.yaml"), "-m", "alphavil", "-o", "run", *LONG]
    process = start(tmp_path, arguments, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    wait_for(tmp_path / FOLDER / "run" / "checkpoints" / "selection" / "0000000002", process)
    process.send_signal(getattr(signal, name))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in output
    assert "sidequest: stopped. What is done is kept; to go on: sidequest select" in output
    assert list((tmp_path / FOLDER / "run" / "checkpoints" / "selection").glob("*/record.json"))
    assert not (tmp_path / FOLDER / "run" / ".lock").exists()


TERMINATED = {"images-alphavil": 6, "images-exp3s": 6, "images-heu-size": 6, "images-train": 6, "frozen-random-data": 4}


def ended_in_the_middle(server, case, kill):
    """What is wrong when SIGTERM comes after an operation: in the middle of whatever is written then."""
    where = f"{case.name}: {kill.at}"
    place = case.begin(f"terminated-{kill.at}")
    try:
        done = server.run(place, case.arguments, {"at": kill.at, "do": "terminate"}, planted=PLAIN_PAGE)
        if done.code != 143 or done.traceback or done.left or "sidequest: stopped." not in done.output:
            return f"{where}: ended with {done.code}:\n{done.output}"
        done = server.run(place, case.arguments, planted=PLAIN_PAGE)
        if done.code != 0 or done.traceback:
            return f"{where}: the same command again ended with {done.code}:\n{done.output}"
        if other := [*differences(case.whole, left_by(place)), *temporary(place)]:
            return f"{where}: other bytes or left over: {', '.join(other)}"
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return None


@pytest.mark.parametrize(
    "name", ["images-heu-size", *(pytest.param(n, marks=pytest.mark.faults) for n in TERMINATED if n[7:] != "heu-size")]
)
def test_a_sigterm_at_any_operation(name, server, prepared, record_property):
    case = prepared(name)
    chosen = [kill for kill in points(case, 4 * TERMINATED[name], SEED + 3) if kill.of == "parent"][: TERMINATED[name]]
    problems = [found for kill in chosen if (found := ended_in_the_middle(server, case, kill))]
    record_property("kills", len(chosen))
    record_property("problems", len(problems))
    assert not problems, "\n".join(problems)


@pytest.mark.faults
def test_a_second_process_in_the_same_directory_is_told(suites, tmp_path):
    (tmp_path / FOLDER).mkdir()
    arguments = ["select", str(suites / "images" / "suite.yaml"), "-m", "alphavil", "-o", "run", *LONG]
    first = start(tmp_path, arguments)
    try:
        wait_for(tmp_path / FOLDER / "run" / "checkpoints", first)
        second = start(tmp_path, arguments)
        output, _ = second.communicate(timeout=120)
        assert second.returncode == 2
        assert f"run: process {first.pid} on " in output
        assert "Traceback" not in output
        assert first.poll() is None
    finally:
        first.kill()
        first.communicate()


def test_nobody_reads_the_output(suites, tmp_path):
    """SIGPIPE: `sidequest methods | head -1`."""
    (tmp_path / FOLDER).mkdir()
    read, write = os.pipe()
    os.close(read)
    process = start(tmp_path, ["methods", "--json"], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in said
    assert "Exception ignored" not in said


POOR = {
    "no home": {"HOME": "", "SIDEQUEST_CACHE": "cache-here"},
    "LANG=C": {"LC_ALL": "C", "LANG": "C"},
    "ascii only": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
    "no terminal": {"TERM": "", "COLUMNS": ""},
}


@pytest.mark.faults
@pytest.mark.parametrize("environment", POOR)
def test_a_poor_environment_changes_nothing(environment, prepared):
    """In a fresh process, as all of this is read when Python starts; the page is drawn."""
    case = prepared("frozen-random-data")
    place = case.begin(environment.replace(" ", "-"))
    process = start(place, case.arguments, {"SIDEQUEST_CACHE": str(place / CACHE), **POOR[environment]})
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert (place / FOLDER / "run" / "recipe.json").read_bytes() == case.whole["run/recipe.json"]


def test_without_a_home_and_a_cache_it_is_said_what_to_set(monkeypatch):
    from sidequest.errors import SettingsError
    from sidequest.files import cache_directory

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("SIDEQUEST_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", homeless)
    with pytest.raises(SettingsError, match="set SIDEQUEST_CACHE"):
        cache_directory()


@pytest.mark.parametrize("removed", [True, False])
def test_a_run_directory_that_is_removed_at_work_is_told(removed, tmp_path):
    """What was written into it before is gone, and what comes after makes it again: no whole run."""
    from sidequest.errors import WorldError
    from sidequest.runs.holding import holding

    run = tmp_path / "run"
    with pytest.raises(WorldError, match="run: was removed") if removed else nullcontext(), holding(run):
        if removed:
            shutil.rmtree(run)
        run.mkdir(exist_ok=True)
        (run / "recipe.json").write_text("{}")


# Files


@pytest.mark.parametrize("mask", ["022", "077"])
def test_modes_follow_the_umask(mask, server, prepared):
    case = prepared("frozen-train")
    place = case.begin(f"mask-{mask}")
    done = server.run(place, case.arguments, planted=(*PLAIN_PAGE, f"tests.faults.plants:umask_{mask}"))
    assert done.code == 0, done.output
    model = place / FOLDER / "run" / "model"
    modes = {path.name: path.stat().st_mode & 0o777 for path in model.rglob("*") if path.is_file()}
    assert modes
    assert {*modes.values()} == {0o666 & ~int(mask, 8)}, modes


@pytest.mark.parametrize(
    "name", ["run.json", "trials.log", "journal.jsonl", "recipe.json", "checkpoints", "report.html"]
)
def test_a_planted_link_is_refused_and_not_followed(name, server, prepared):
    case = prepared("images-heu-size")
    place = case.begin(f"link-{name}")
    victim = place / "victim"
    victim.write_text("mine")
    (place / FOLDER / "run").mkdir()
    (place / FOLDER / "run" / name).symlink_to(victim)
    done = server.run(place, case.arguments, planted=PLAIN_PAGE)
    assert done.code == 2, done.output
    one_sentence(done, f"run/{name}", "symbolic link")
    assert victim.read_text() == "mine"
