"""compare: budgets, equal-sized random subsets, several primaries, files for other tools."""

import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stdout

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sidequest.cli import app
from sidequest.cli.tables import print_comparison
from sidequest.recipe import Recipe
from sidequest.records.comparisons import Comparison
from sidequest.records.verdicts import notes
from sidequest.runs import cells
from sidequest.runs.comparing import compare
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup
from sidequest.runs.training import train_recipe
from sidequest.tasks.loading import load_suite
from tests.helpers import ROOT

pytestmark = pytest.mark.usefixtures("few_digits")


@pytest.fixture
def setup(tmp_path, monkeypatch) -> Setup:
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    suite = load_suite("digits")
    return Setup.of(suite.subset(sorted(suite.candidates)[:3]), {}, {"epochs": 2, "max_batches": 8})


def test_a_random_subset_is_as_large_as_what_the_methods_chose(setup, tmp_path):
    chosen = sorted(setup.suite.candidates)[:2]
    found = compare(setup, {"autosem-no-stage1": {"tasks": chosen, "trials": 2, "initial": 2}}, [0, 1], tmp_path / "c")
    sizes = {
        (outcome.method, outcome.seed): len(outcome.auxiliaries)
        for outcome in found.outcomes
        if outcome.method in ("random-subset", "autosem-no-stage1")
    }
    for seed in (0, 1):
        assert sizes["random-subset", seed] == max(1, sizes["autosem-no-stage1", seed])
    assert sum(row.probability_best for row in found.rows) == pytest.approx(1)
    row = next(row for row in found.rows if row.method == "autosem-no-stage1")
    assert row.examples > 0
    assert row.selection_x > 1  # two trials
    assert row.peak_memory_mb is None or row.peak_memory_mb > 10
    table = pq.read_table(tmp_path / "c" / "outcomes.parquet").to_pylist()
    assert len(table) == len(found.outcomes) == 14
    assert {entry["method"] for entry in table} == {row.method for row in found.rows}
    assert table[0]["score"] == found.outcomes[0].score


def test_methods_of_an_earlier_command_are_named(run, monkeypatch, tmp_path):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    common = ("--seeds", 1, "--workers", 1, "--set", "train.max_batches=4", "-o", tmp_path / "c")
    code, text, errors = run("compare", "digits", "-m", "heu-type", *common)
    assert code == 0, errors
    assert "also done here" not in text
    code, text, errors = run("compare", "digits", "-m", "uniform", *common)
    assert code == 0, errors
    assert "also done here, and not in this table: heu-type; name them with -m" in text


def test_two_methods_added_to_a_finished_comparison_train_only_themselves(setup, tmp_path):
    first = compare(setup, ["heu-type"], [0, 1], tmp_path / "c")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "c").rglob("outcome.json")}
    grown = compare(setup, ["heu-type", "heu-len", "uniform"], [0, 1], tmp_path / "c")
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "c").rglob("outcome.json")}
    new = {path.relative_to(tmp_path / "c").parts[0] for path in after if path not in before}
    assert {"heu-len", "uniform"} <= new
    # Only where an added method is now the best on select, the primary alone is trained as long as that one.
    assert new - {"heu-len", "uniform"} == ({"single-long"} if grown.changes else set())
    assert all(after[path] == time for path, time in before.items())
    for row in first.rows:
        if row.method != "single-long":
            assert grown.row(row.method).scores == row.scores
    assert grown.random_sizes == first.random_sizes
    assert any("heu-len and uniform came later" in note for note in notes(grown))
    assert not any("came later" in note for note in notes(first))
    again = compare(setup, ["heu-type", "heu-len", "uniform"], [0, 1], tmp_path / "c")
    assert again.model_dump(mode="json") == grown.model_dump(mode="json")


def test_a_cell_can_be_trained_and_compared_again(setup, tmp_path):
    first = compare(setup, {"heu-type": {}}, [0, 1], tmp_path / "c")
    cell = tmp_path / "c" / "heu-type" / "seed-0"
    train_recipe(setup, Recipe.read(cell / "recipe.json"), 0, directory=cell)
    again = compare(setup, {"heu-type": {}}, [0, 1], tmp_path / "c")
    assert [row.scores for row in again.rows] == [row.scores for row in first.rows]
    assert {"scores.json", "outcome.json", "predictions.npz"} <= {path.name for path in cell.iterdir()}


def test_a_budget_stops_a_selection(setup):
    free = select(setup, "exp3s", settings={"steps": 60}, seed=0)
    short = select(setup, "exp3s", settings={"steps": 60}, seed=0, budget=free.cost.x / 2)
    assert short.provenance["stopped_by_budget"] == pytest.approx(free.cost.x / 2)
    assert short.cost.x < free.cost.x
    assert short.auxiliaries  # it decides by what it has seen
    assert "stopped_by_budget" not in free.provenance
    same = select(setup, "exp3s", settings={"steps": 60}, seed=0, budget=1000)
    assert same.cost == free.cost


def test_a_method_that_cannot_decide_early_takes_the_primary_alone(setup):
    stopped = select(setup, "counterfactual", settings={"steps": 400}, seed=0, budget=0.01)
    assert stopped.tasks == (setup.suite.primary,)
    assert stopped.provenance["stopped_by_budget"] == 0.01


def test_several_primaries_give_one_table(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    rows = [{"text": f"word{i % 7} more", "label": i % 2} for i in range(80)]
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "suite.yaml").write_text(
        "primary: one\ntasks:\n"
        "  one: {train: one.jsonl, objective: classification, text: text, label: label}\n"
        "  two: {train: two.jsonl, objective: classification, text: text, label: label}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        asked = CliRunner().invoke(app, ["compare", "suite.yaml", "--primary", "one,three", "-o", "out"])
    assert asked.exit_code != 0
    assert "three" in str(asked.exception)
    digits = load_suite("digits")
    other = next(name for name in digits.candidates if "report" in digits.tasks[name].splits)
    options = ["--seeds", "2", "--workers", "1", "--set", "train.epochs=1", "--set", "train.max_batches=2"]
    names = f"{digits.primary},{other}"
    made = CliRunner().invoke(
        app, ["compare", "digits", "-m", "", "--primary", names, "-o", str(tmp_path / "out"), *options]
    )
    assert made.exit_code == 0, made.output
    table = json.loads((tmp_path / "out" / "table.json").read_text())
    assert set(table["metrics"]) == {digits.primary, other}
    assert set(table["methods"]) == {"single", "single-long", "probe", "all", "size", "random-subset"}
    assert (tmp_path / "out" / "table.csv").read_text().startswith(f"method,{digits.primary} (")
    recipe = Recipe.read(tmp_path / "out" / other / "all" / "seed-0" / "recipe.json")
    assert recipe.primary == other


@pytest.mark.slow
def test_a_method_of_a_users_file_is_compared_in_worker_processes(run, tmp_path):
    reference = f"{ROOT / 'tests' / 'helpers' / 'toy_method.py'}:LargestGain"
    options = ["--seeds", "1", "--workers", "2", "-o", tmp_path, "--json"]
    code, out, errors = run(
        "compare",
        "digits",
        "-m",
        reference,
        *options,
        "--set",
        "train.max_batches=20",
        "--set",
        "largest-gain.least_gain=0.9",
    )
    assert code == 0, errors
    rows = {row["method"]: row for row in json.loads(out)["rows"]}
    assert rows["largest-gain"]["seeds"] == [0]
    recipe = Recipe.read(tmp_path / "largest-gain" / "seed-0" / "recipe.json")
    assert recipe.method == "largest-gain"
    assert recipe.provenance["method_settings"] == {"least_gain": 0.9}
    assert recipe.auxiliaries == ()


REFUSED = """
import sys
from pathlib import Path
from sidequest.cli import app
from sidequest.cli.tables import print_comparison
from sidequest.errors import SettingsError
for command in (["compare", "digits", "-m", "gradts-thres", "-o", "x"], ["select", "digits", "-m", "gradts-thres", "-o", "x"]):
    try:
        app(command, standalone_mode=False)
        raise SystemExit("not refused")
    except SettingsError as error:
        assert "has no attention heads: set model.kind to hf" in str(error), error
assert not Path("x").exists()
print("torch" in sys.modules)
"""


def test_a_method_that_the_model_cannot_run_is_refused_before_torch_is_imported_and_leaves_nothing(tmp_path):
    done = subprocess.run([sys.executable, "-c", REFUSED], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


def test_a_comparison_with_a_missing_cell_ends_with_exit_code_1_and_its_table(tmp_path, monkeypatch):
    real = cells.train_once

    def broken(setup, recipe, seed, run=None):
        if recipe.method == "all":
            raise RuntimeError("no luck")
        return real(setup, recipe, seed, run)

    monkeypatch.setattr(cells, "train_once", broken)
    options = ["--seeds", "1", "--workers", "1", "--set", "train.epochs=1", "--set", "train.max_batches=2"]
    command = ["compare", "digits", "-m", "", "-o", str(tmp_path / "c"), *options]
    part = CliRunner().invoke(app, command)
    assert part.exit_code == 1
    said = " ".join(part.output.split())
    assert "Missing, because it failed: all seed 0: RuntimeError: no luck" in said
    assert "repeats what is missing and nothing else" in said
    assert "single-long" in said
    monkeypatch.setattr(cells, "train_once", real)
    assert CliRunner().invoke(app, command).exit_code == 0


def test_a_control_that_failed_is_said_to_be_missing_in_the_shell_and_on_the_page(tmp_path, monkeypatch):
    from sidequest.runs import controls

    def broken(*_):
        raise RuntimeError("no luck")

    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(controls, "long_phase", broken)
    options = ["--seeds", "3", "--workers", "1", "--set", "train.epochs=1", "--set", "train.max_batches=2"]
    done = CliRunner().invoke(app, ["compare", "digits", "-m", "", "-o", str(tmp_path / "c"), *options])
    assert done.exit_code == 1
    note = "single-long is missing, so no method can be shown to help"
    assert note in " ".join(done.output.split())
    assert "auxiliary tasks help" not in done.output
    assert note in " ".join((tmp_path / "c" / "report.html").read_text().split())
    assert Comparison.read(tmp_path / "c").controls[0] == "single-long"


def test_no_number_is_minus_zero(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    digits = load_suite("digits")
    setup = Setup.of(digits.subset(["parity"]), {}, {"epochs": 1, "max_batches": 1, "learning_rate": 1e-9})
    compare(setup, {"heu-type": {}}, [0, 1, 2], tmp_path / "c")  # nothing learns: all differences are zero
    shown = io.StringIO()
    with redirect_stdout(shown):
        print_comparison(Comparison.read(tmp_path / "c"))
    assert "+0.000" in shown.getvalue()
    page = (tmp_path / "c" / "report.html").read_text(encoding="utf-8").partition('id="plotly"')[0]
    tables = "".join(path.read_text() for path in (tmp_path / "c" / "tables").iterdir())
    for text in (shown.getvalue(), page, tables):
        assert not re.search(r"[-−]0\.0+(?![0-9])", text)
