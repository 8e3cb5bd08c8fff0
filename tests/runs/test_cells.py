"""A comparison that grows keeps what is done, refuses early, and survives a cell that fails."""

import time

import pytest
import torch

from sidequest.errors import RunMismatch, SettingsError
from sidequest.progress import Progress
from sidequest.recipe import Recipe
from sidequest.records.comparisons import Comparison, MissingCell
from sidequest.runs import cells, comparing, controls, finals
from sidequest.runs.cells import FAILURE, place_job
from sidequest.runs.comparing import compare
from sidequest.runs.pages import WrittenPage
from sidequest.runs.setup import Setup
from sidequest.tasks.digits import digits_suite


@pytest.fixture
def setup(tmp_path, monkeypatch) -> Setup:
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    rows = {"top-left": 60, "parity": 60, "large": 60, "bottom-right": 60, "ink": 0, "shuffled": 0}
    suite = digits_suite(0, rows=rows, select_rows=20, report_rows=40)
    return Setup.of(suite, {"channels": [4, 8], "hidden": 16}, {"epochs": 1, "max_batches": 6})


@pytest.fixture(autouse=True)
def no_page(request, monkeypatch):
    """The page takes longer than all the rest: only tests that ask for `page` write it."""
    if "page" not in request.fixturenames:
        monkeypatch.setattr(comparing, "write_run_page", lambda *_: WrittenPage())


@pytest.fixture
def page() -> None:
    """See `no_page`."""


@pytest.fixture
def trainings(monkeypatch) -> list[tuple[str, int]]:
    """Every final training that really runs, as (method, seed)."""
    seen: list[tuple[str, int]] = []
    real = finals.train_recipe

    def counted(setup, recipe, seed, **options):
        seen.append((recipe.method, seed))
        return real(setup, recipe, seed, **options)

    monkeypatch.setattr(finals, "train_recipe", counted)
    return seen


@pytest.fixture
def selections(monkeypatch) -> list[tuple[str, int, float | None]]:
    """Every selection that really runs, as (method, seed, budget)."""
    seen: list[tuple[str, int, float | None]] = []
    real = cells.select

    def counted(setup, method, *, seed, directory, budget, **options):
        if not (directory / "recipe.json").exists():
            seen.append((method, seed, budget))
        return real(setup, method, seed=seed, directory=directory, budget=budget, **options)

    monkeypatch.setattr(cells, "select", counted)
    return seen


def scores(comparison: Comparison, method: str) -> list[float]:
    return comparison.row(method).scores


def test_two_methods_added_to_a_finished_comparison_are_all_that_trains(setup, tmp_path, trainings, selections):
    first = compare(setup, {"heu-type": {}}, [0, 1], tmp_path / "c")
    selections.clear()
    trainings.clear()
    grown = compare(setup, {"heu-type": {}, "uniform": {}, "temperature": {}}, [0, 1], tmp_path / "c")
    # `random-subset` is as large as what the methods choose, and `single-long` as long as the best of them: both may be new.
    dependent = {"random-subset", "single-long"}
    assert {method for method, _, _ in selections} - dependent == {"uniform", "temperature"}
    assert {method for method, _ in trainings} <= {"uniform", "temperature"} | dependent
    for method in ("single", "all", "size", "heu-type"):
        assert scores(grown, method) == scores(first, method)
    trainings.clear()
    again = compare(setup, {"heu-type": {}}, [0, 1], tmp_path / "c")
    assert trainings == []
    assert [row.scores for row in again.rows] == [row.scores for row in first.rows]


def test_a_random_subset_of_another_size_has_a_place_of_its_own(setup, tmp_path):
    names = sorted(setup.suite.candidates)

    def grown(count: int) -> Comparison:
        fixed = {"tasks": names[:count], "trials": 2, "initial": 2}
        return compare(setup, {"autosem-no-stage1": fixed}, [0], tmp_path / "c")

    sizes = [len(next(o for o in grown(n).outcomes if o.method == "random-subset").auxiliaries) for n in (1, 3, 1)]
    assert sizes[0] == sizes[2]
    assert sizes[0] <= sizes[1]
    assert len(list((tmp_path / "c").glob("autosem-no-stage1/**/run.json"))) == 2


def test_seeds_can_be_added(setup, tmp_path, selections):
    first = compare(setup, {"heu-type": {}}, [0, 1], tmp_path / "c")
    selections.clear()
    more = compare(setup, {"heu-type": {}}, [0, 1, 2], tmp_path / "c")
    assert {seed for method, seed, _ in selections if method != "random-subset"} == {2}
    assert scores(more, "heu-type")[:2] == scores(first, "heu-type")


def test_a_budget_that_a_selection_did_not_reach_finds_it_again(setup, tmp_path, selections):
    settings = {"exp3s": {"steps": 60}}
    free = compare(setup, settings, [0], tmp_path / "c")
    cost = free.row("exp3s").selection_x
    assert cost > 0
    selections.clear()
    wide = compare(setup, settings, [0], tmp_path / "c", budget=2 * cost)
    assert selections == []
    assert wide.row("exp3s").scores == free.row("exp3s").scores
    assert wide.budget == 2 * cost
    narrow = compare(setup, settings, [0], tmp_path / "c", budget=cost / 2)
    assert [method for method, _, _ in selections] == ["exp3s"]
    assert narrow.row("exp3s").stopped == 1
    assert free.row("exp3s").stopped == 0
    selections.clear()
    assert compare(setup, settings, [0], tmp_path / "c").row("exp3s").scores == free.row("exp3s").scores
    assert selections == []


def test_a_run_that_was_stopped_by_another_budget_is_not_taken(setup, tmp_path):
    settings = {"steps": 60}
    compare(setup, {"exp3s": settings}, [0], tmp_path, budget=0.1)
    assert Recipe.read(tmp_path / "exp3s" / "seed-0" / "recipe.json").provenance["stopped_by_budget"] == 0.1
    assert place_job(tmp_path, setup, "exp3s", settings, 0, 0.1).directory == tmp_path / "exp3s" / "seed-0"
    other = place_job(tmp_path, setup, "exp3s", settings, 0, 0.2)
    assert other.directory == tmp_path / "exp3s" / "steps=60,budget=0.2" / "seed-0"
    assert not other.selected
    assert place_job(tmp_path, setup, "exp3s", settings, 0).directory == tmp_path / "exp3s" / "steps=60" / "seed-0"


def test_strange_settings_get_a_plain_name(setup, tmp_path):
    compare(setup, {"autosem-no-stage1": {"trials": 2, "initial": 2}}, [0], tmp_path)
    strange = {"tasks": ["../../x", "y" * 300], "trials": 2, "initial": 2}
    directory = place_job(tmp_path, setup, "autosem-no-stage1", strange, 0).directory
    assert directory.parent.parent == tmp_path / "autosem-no-stage1"
    assert directory.parent.name.startswith("settings-")


def test_other_training_in_the_same_directory_is_refused_before_any_work(setup, tmp_path, trainings):
    compare(setup, {}, [0], tmp_path / "c")
    trainings.clear()
    other = Setup.of(setup.suite, {}, {"epochs": 2, "max_batches": 6})
    with pytest.raises(RunMismatch, match=r"train.epochs: there 1, now 2"):
        compare(other, {"heu-type": {}}, [0, 1], tmp_path / "c")
    assert trainings == []
    assert not (tmp_path / "c" / "heu-type").exists()


@pytest.mark.parametrize(
    ("methods", "seeds", "says"),
    [
        ({"heu-typ": {}}, [0], "Did you mean 'heu-type'?"),
        ({"heu-type": {"nothing": 1}}, [0], "unknown setting 'nothing'"),
        ({}, [], "at least one"),
        ({}, [0, 0], "different whole numbers"),
        ({}, [-1], "from 0"),
        ("heu-type", [0], "a list of names"),
    ],
)
def test_what_can_be_refused_is_refused_at_once_and_claims_nothing(setup, tmp_path, methods, seeds, says):
    start = time.monotonic()
    with pytest.raises(SettingsError, match=says):
        compare(setup, methods, seeds, tmp_path / "c")
    assert time.monotonic() - start < 2
    assert not (tmp_path / "c").exists()


def test_a_file_in_the_way_is_refused_at_once(setup, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "all").write_text("")
    with pytest.raises(SettingsError, match="a file is in its way"):
        compare(setup, {}, [0], tmp_path / "c")


def test_a_cell_that_fails_fails_alone_and_is_repeated_alone(setup, tmp_path, monkeypatch, trainings, page):
    real = cells.train_once

    def broken(setup, recipe, seed, run=None):
        if recipe.method == "heu-type" and seed == 1:
            raise RuntimeError("no luck\nat all")
        return real(setup, recipe, seed, run)

    monkeypatch.setattr(cells, "train_once", broken)
    ended = []

    class Listener(Progress):
        def job(self, done, total, label, result, x):
            ended.append((done, total, result, x))

    part = compare(
        setup,
        {"heu-type": {}},
        [0, 1, 2],
        tmp_path / "c",
        command="sidequest compare digits",
        progress=Listener(),
    )
    assert [(cell.method, cell.seed) for cell in part.missing] == [("heu-type", 1)]
    assert part.missing[0].error.startswith("RuntimeError: no luck (see ")
    assert part.row("heu-type").seeds == [0, 2]
    assert part.row("single").seeds == [0, 1, 2]
    assert part.row("heu-type").against[0].n == 2
    assert part.row("heu-type").verdict == "no verdict"
    assert "at all" in (tmp_path / "c" / "heu-type" / "seed-1" / FAILURE).read_text()
    assert sum(isinstance(cell, MissingCell) for _, _, cell, _ in ended) == 1
    assert [count for count, _, _, _ in ended] == list(range(1, len(ended) + 1))
    assert {total for _, total, _, _ in ended} == {len(ended)}
    assert ended[-1][-1] == pytest.approx(sum(cell.x for _, _, cell, _ in ended if not isinstance(cell, MissingCell)))
    page = (tmp_path / "c" / "report.html").read_text()
    assert "heu-type seed 1: RuntimeError: no luck" in page
    assert "<code>sidequest compare digits</code> repeats what is missing" in page
    monkeypatch.setattr(cells, "train_once", real)
    trainings.clear()
    whole = compare(setup, {"heu-type": {}}, [0, 1, 2], tmp_path / "c")
    assert whole.missing == ()
    assert {method for method, _ in trainings} <= {"heu-type", "random-subset", "single-long"}
    assert not list((tmp_path / "c").rglob(FAILURE))


def test_without_the_baseline_there_is_a_table_and_no_verdict(setup, tmp_path, monkeypatch, page):
    def broken(*_):
        raise RuntimeError("no luck")

    monkeypatch.setattr(cells, "train_once", broken)
    monkeypatch.setattr(controls, "train_once", broken)
    with pytest.warns(UserWarning, match="no page"):
        nothing = compare(setup, {}, [0, 1, 2], tmp_path / "c")
    assert [row.method for row in nothing.rows] == ["probe"]  # it trains nothing
    assert "single is missing" in nothing.verdict


def test_a_model_that_diverged_is_a_missing_cell(setup, tmp_path, monkeypatch):
    real = cells.run_job
    monkeypatch.setattr(cells, "run_job", lambda s, job: real(s, job).model_copy(update={"score": float("nan")}))
    cell = cells.attempt(setup, cells.Job("single", {}, 0, tmp_path / "single"))
    assert isinstance(cell, MissingCell)
    assert "diverged" in cell.error


def test_the_callers_threads_stay_as_they_are_and_the_page_is_written(setup, tmp_path, page):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        compare(setup, ["heu-type"], [0], tmp_path / "c")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert (tmp_path / "c" / "report.html").is_file()
    assert (tmp_path / "c" / "tables" / "comparison.csv").is_file()


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(setup, tmp_path):
    def run(workers: int) -> Comparison:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SIDEQUEST_CACHE", str(tmp_path / f"cache-{workers}"))
            return compare(setup, {"heu-type": {}}, [0, 1], tmp_path / str(workers), workers=workers)

    one, two = run(1), run(2)
    timeless = {"seconds": 0.0, "peak_memory_mb": None}
    assert [row.model_copy(update=timeless) for row in one.rows] == [
        row.model_copy(update=timeless) for row in two.rows
    ]
    for outcome in one.outcomes:
        files = [tmp_path / n / outcome.directory / "predictions.npz" for n in ("1", "2")]
        assert files[0].read_bytes() == files[1].read_bytes()
