"""The experiment's machinery on a tiny suite; its plans name what exists; its figures show what they are given."""

import json
from dataclasses import replace

import numpy as np
import pytest

from experiments import EXPERIMENTS, Options, run
from experiments import similarity as experiment
from experiments.data import GLUE_FOLDERS
from experiments.similarity_paper import CURVES, ENDS
from experiments.similarity_plan import PRIMARIES, SimilarityPlan, full_plan, load_tasks, runs_of, setup_of, small_plan
from sidequest.files import read_json
from sidequest.methods import METHODS
from sidequest.model_settings import PooledSettings
from sidequest.recipe import Phase, Recipe
from sidequest.records.controls import CONTROLS
from sidequest.records.evidence import RowRankings
from sidequest.report import similarity as figures
from sidequest.runs.selecting import make_method
from sidequest.settings import TrainSettings
from sidequest.tasks.task import Objective
from tests.helpers.word_suites import word_task


@pytest.mark.parametrize("plan", [full_plan(), small_plan()], ids=["full", "small"])
def test_plans_name_what_exists(plan):
    assert "similarity" in EXPERIMENTS
    assert set(plan.primaries) <= set(GLUE_FOLDERS)
    labels = [each.label for each in runs_of(plan)]
    assert len(labels) == len(set(labels))
    for each in (each for each in runs_of(plan) if each.method not in CONTROLS):
        assert each.method in METHODS
        make_method(each.method, dict(each.settings))
    assert plan.train.epochs == plan.epochs + plan.finetune_epochs  # `single` sees the primary as often


@pytest.mark.integration
def test_the_small_suite_is_read_alike_in_every_role(shared_data):
    plan = replace(small_plan(), primaries=("stsb", "rte", "mrpc"))
    tasks = load_tasks(plan, shared_data / "glue")
    facts = [setup_of(plan, tasks, primary).facts_together() for primary in plan.primaries]
    assert facts[0] == facts[1] == facts[2]  # one discriminator serves them all
    few = setup_of(plan, tasks, "rte", 100)
    assert len(few.suite["rte"].train) == 100
    assert few.suite["rte"].splits["report"] is tasks["rte"].splits["report"]
    again, other = (setup_of(plan, tasks, "rte", 100, seed).suite["rte"].train.ids.tolist() for seed in (0, 1))
    assert again == few.suite["rte"].train.ids.tolist()
    assert other != again  # few rows are drawn for each seed: their luck is part of what varies


@pytest.mark.slow
@pytest.mark.integration
def test_every_table_and_figure_on_a_tiny_suite(word_bert, tmp_path, capsys, monkeypatch):
    tasks = {
        "one": word_task("one", rows=40),
        "two": word_task("two", objective=Objective.REGRESSION, rows=44),
        "three": word_task("three", rows=60),
    }
    plan = SimilarityPlan(
        PooledSettings(encoder=str(word_bert), hidden=8),
        TrainSettings(epochs=2, batch_size=16, patience=None),
        {"one": 40, "two": 44, "three": 60},
        None,
        rows=12,
        counts=(10, 30),
        count=20,
        few=(8,),
        epochs=1,
        finetune_epochs=1,
        discriminator_epochs=1,
        shown=20,
        seeds=2,
        primaries=("one", "two"),
    )
    monkeypatch.setattr(experiment, "small_plan", lambda: plan)
    monkeypatch.setattr(experiment, "load_tasks", lambda plan, data: tasks)
    (tmp_path / "glue").mkdir()
    options = Options(tmp_path, small=True, data=tmp_path, results=tmp_path / "results", only=("features",))
    results = run("similarity", options)
    printed = capsys.readouterr().out
    assert read_json(tmp_path / "results.json") == json.loads(json.dumps(results))
    assert {row["task"] for row in results["claims"]} == {"one", "two"}
    assert any((row["ours"], row["baseline"]) == ("bce-20", "random-20") for row in results["claims"])
    assert "Seconds of each stage" in printed
    for name in (
        "figure-1-none",
        "figure-1-bce",
        "figure-3-5-one",
        "figure-6-two",
        "figure-7-in-task",
        "figure-8-one",
        "figure-9-two",
    ):
        assert (tmp_path / f"{name}.html").exists()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("outcome.json")}
    run("similarity", options)  # again: everything is found
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("outcome.json")}


def recipe(pool, taken):
    phase = Phase(shares={"p": 1})
    return Recipe(method="similarity", primary="p", phases=(phase,), evidence={"pool": pool, "taken": taken})


def test_shares_are_of_what_could_be_taken():
    figure = figures.share_per_auxiliary(
        {"bce": recipe({"a": 100, "b": 50, "c": 0}, {"a": 25}), "random": recipe({"a": 100}, {"a": 5})}
    )
    assert [list(trace.y) for trace in figure.data] == [[0.25, 0.0, 0.0], [0.05, 0.0, 0.0]]
    assert list(figure.data[0].x) == ["a", "b", "c"]


def test_curves_show_means_bands_and_levels():
    figure = figures.score_against_rows(
        {"bce": {1000: [2.0, 4.0], 500: [1.0, 1.0]}}, {"single": [1.0, 2.0]}, "accuracy"
    )
    band, line, level = figure.data
    assert list(line.x) == [500, 1000]
    assert list(line.y) == [1.0, 3.0]
    assert list(band.y) == [1.0, 4.0, 2.0, 1.0]
    assert list(level.y) == [1.5, 1.5]


def test_features_have_the_primary_on_top_in_its_colour():
    points = {name: np.zeros((3, 2)) for name in ("a", "p", "z")}
    figure = figures.feature_map(points, "p")
    assert [trace.name for trace in figure.data] == ["a", "z", "p"]
    assert figure.data[2].marker.color == figures.PRIMARY
    bars = figures.in_task_efficacy({"bce": {"rte": 1.5}, "ce": {"rte": -0.5}})
    assert [list(trace.y) for trace in bars.data] == [[1.5], [-0.5]]


def test_scores_of_tasks_are_shown_as_shares_with_the_threshold():
    evidence = {
        "bins": [0.0, 1.0, 2.0],
        "ranked": {"a": {"rows": 10, "histogram": [4, 6]}},
        "threshold": 1.5,
    }
    figure = figures.score_spread(RowRankings.of(evidence))
    assert list(figure.data[0].y) == [0.4, 0.6]
    assert figure.layout.shapes[0].x0 == 1.5


def test_what_is_done_is_drawn_before_any_curve_is(tmp_path):
    experiment.draw_primary(small_plan(), "stsb", "pearson", {"single": [0.8], "all": [0.7]}, tmp_path)
    assert not list(tmp_path.glob("figure-3-5*"))
    experiment.draw_primary(small_plan(), "stsb", "pearson", {"single": [0.8], "bce-500": [0.7]}, tmp_path)
    assert list(tmp_path.glob("figure-3-5*"))


def kept(primary, label, seed, score, **more):
    """A stored result of one training."""
    facts = {"method": label, "task": primary, "seed": seed, "report": score, "select": score, "seconds": 9.0}
    return facts | {"metrics": {"pearson": score}, "x": {"choose": 1.0, "train": 2.0}} | more


def rows_of(table):
    """By the first column, the cells of the others."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {first: cells for first, *cells in lines[:1] + lines[2:]}


def test_every_number_of_the_papers_curve_is_at_an_n_of_the_full_size():
    plan = full_plan()
    assert set(CURVES) == set(PRIMARIES)
    assert all({*curve} == {*plan.counts} for curve in CURVES.values())
    assert set(ENDS) == set(plan.primaries)
    assert all(len({*curve.values()}) == len(plan.counts) for curve in CURVES.values())  # no row stands there twice


def test_the_papers_numbers_stand_beside_ours():
    done = {"a": kept("stsb", "bce-4000", 0, 0.5), "b": kept("stsb", "single", 0, 0.4)}
    rows = rows_of(experiment.curve_table(full_plan(), "stsb", done, "pearson"))
    assert rows["rows taken"][-3:] == ["paper: bce", "paper: ce", "paper: random"]
    assert rows["4,000"][0].startswith("50.0")
    assert rows["4,000"][-3:] == ["86.9/85.7", "84.0/82.5", "85.5/84.0"]
    assert rows["8,000"][-3:] != rows["4,000"][-3:]
    assert (rows["single"][-3], rows["all"][-3]) == ("84.65/82.74", "86.23/85.42")
    assert rows["single-long"][-3:] == ["", "", ""]  # a control of ours alone
    other = rows_of(experiment.curve_table(full_plan(), "rte", {}, "accuracy"))
    assert other["4,000"][-3:] == ["69.0", "68.6", "69.1"]
    unknown = rows_of(experiment.curve_table(full_plan(), "cola", {}, "matthews"))
    assert unknown["4,000"][-3:] == ["", "", ""]  # the paper has no curve of it
    assert unknown["single"][-3] == "53.32"


def test_results_are_written_with_the_papers_numbers(tmp_path, capsys):
    experiment.show(Options(tmp_path, small=True), {"a": kept("stsb", "bce-500", 0, 0.5)})
    assert "the paper's numbers are of its test set" in capsys.readouterr().out
    assert read_json(tmp_path / "results.json")["paper"]["curves"]["stsb"]["500"] == [
        "82.7/81.0",
        "83.2/81.8",
        "83.0/81.4",
    ]


def test_seconds_of_stages_stand_beside_the_papers():
    stages = [kept("rte", experiment.STAGES, 0, 0.0, stages={"training": 3.0, "ranking": 4.0})]
    ran = {"a": kept("rte", "bce-4000", 0, 0.5), "b": kept("rte", "random-4000", 0, 0.5, seconds=5.0)}
    table = experiment.time_table(full_plan(), stages, ran).splitlines()
    cells = {line.split("|")[2].strip(): [cell.strip() for cell in line.strip("|").split("|")][2:] for line in table}
    assert cells["bce-4000"] == ["3.0", "4.0", "9.0", "95", "775", "1,160"]
    assert cells["random-4000"] == ["", "", "5.0", "", "", "290"]
    assert cells["all"] == ["", "", "", "", "", "15,891"]
