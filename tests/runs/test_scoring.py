"""Methods judged by a truth table: by look-up, by training what they gave, and run after run into one record."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from sidequest.cli import app
from sidequest.cli.tables import print_standings
from sidequest.errors import RunMismatch, SettingsError
from sidequest.records.standings import Judged, StandingsRecord, TableFacts
from sidequest.report.quality import standings_csv
from sidequest.runs import finals, scoring
from sidequest.runs.finals import train_once
from sidequest.runs.scoring import Truth, judge
from sidequest.runs.selecting import select
from sidequest.runs.standings import grown, joined, standing
from sidequest.runs.training import train_recipe
from sidequest.runs.truth import TruthTable


def test_methods_are_judged_without_training_their_choice(small_digits, monkeypatch, tmp_path):
    setup, _, table, cache = small_digits
    monkeypatch.setenv("SIDEQUEST_CACHE", str(cache))
    truth = Truth("digits", table, setup)
    record = judge(truth, {"single": {}, "all": {}, "heu-size": {}, "gradts-thres": {}}, [0, 1])
    by_name = {row.method: row for row in record.standings}
    assert by_name["single"].regret == pytest.approx(table.regret(()))
    assert by_name["all"].regret == pytest.approx(table.regret(table.candidates))
    assert by_name["single"].rank == table.rank(())
    assert by_name["single"].x == 0
    assert "HeadImportance" in by_name["gradts-thres"].failed or "attention" in by_name["gradts-thres"].failed
    assert {row.method for row in record.judged} == {"single", "all", "heu-size"}


def test_recipes_are_trained_as_they_are_and_say_what_they_deliver(small_digits, monkeypatch, tmp_path):
    setup, _, table, cache = small_digits
    monkeypatch.setenv("SIDEQUEST_CACHE", str(cache))
    monkeypatch.setattr(TruthTable, "something_helps", property(lambda self: True))
    low = [
        s.model_copy(update={"report": tuple(r - 0.1 for r in s.report)}) if not s.auxiliaries else s
        for s in table.subsets
    ]
    table = table.model_copy(update={"subsets": tuple(low)})
    truth = Truth("digits", table, setup)
    record = judge(truth, {"single": {}, "all": {}, "temperature": {}}, [0, 1], train=True)
    judged, by_name = record.judged, {row.method: row for row in record.standings}
    assert by_name["single"].delivered == 0
    scores = {(row.method, row.seed): row.score for row in judged}
    for seed in (0, 1):  # as it is: all rows, shuffled, and not the table's 1:1
        assert scores["all", seed] == train_recipe(setup, select(setup, "all", seed=seed), seed).report["accuracy"]
    expected = np.mean([scores["all", seed] - scores["single", seed] for seed in (0, 1)]) / table.gap
    assert by_name["all"].delivered == pytest.approx(expected, abs=1e-4)
    assert [row.score for row in judged if row.method == "temperature"] != [
        row.score for row in judged if row.method == "all"
    ]  # the mixture is trained, not the set that it uses
    assert by_name["all"].chosen == 1
    assert by_name["single"].chosen == 0


def test_a_recipe_of_rows_and_phases_is_trained_with_them(small_digits, monkeypatch, tmp_path):
    setup, _, table, cache = small_digits
    monkeypatch.setenv("SIDEQUEST_CACHE", str(cache))
    truth = Truth("digits", table, setup)
    settings = {"rows": 0, "count": 40, "epochs": 1, "finetune_epochs": 1}
    (one,) = judge(truth, {"random-data": settings}, [0], train=True).judged
    recipe = select(setup, "random-data", settings=settings, seed=0)
    assert len(recipe.phases) == 2
    assert sum(len(subset.ids) for subset in recipe.phases[0].subsets.values()) == 40
    assert one.score == train_recipe(setup, recipe, 0).report["accuracy"]
    assert one.method.startswith("random-data ")  # with settings of its own it is not what others call random-data
    without = recipe.model_copy(update={"phases": (recipe.phases[0].model_copy(update={"subsets": {}}),)})
    assert one.score != train_recipe(setup, without, 0).report["accuracy"]


def test_a_model_that_the_method_trains_is_scored_as_it_stands_with_and_without_a_directory(
    small_digits, monkeypatch, tmp_path
):
    """Models of six batches are all alike: what tells them apart is that nothing is paid for one that is there."""
    setup, _, table, cache = small_digits
    monkeypatch.setenv("SIDEQUEST_CACHE", str(cache))
    truth, trained = Truth("digits", table, setup), []

    def noted(setup, recipe, *rest):
        trained.append((recipe.method, train_once(setup, recipe, *rest).record))
        return trained[-1][1]

    monkeypatch.setattr(scoring, "train_once", lambda *given: SimpleNamespace(record=noted(*given)))
    (kept,) = judge(truth, {"diw": {}}, [0], directory=tmp_path, train=True).judged
    (passing,) = judge(truth, {"diw": {}}, [0], train=True).judged
    assert kept == passing
    own = [record for method, record in trained if method == "diw"]
    assert [record.training.x for record in own] == [0, 0]
    recipe = select(setup, "diw", seed=0, directory=tmp_path / "digits" / "diw" / "seed-0")
    assert train_once(setup, recipe, 0).record.training.x > 0


# A run that grows

FACTS = TableFacts(subsets=4, gap=0.2, content="a")


def one(method="m", seed=0, truth="t", regret=0.1, **more):
    return Judged(
        **{"truth": truth, "method": method, "seed": seed, "auxiliaries": ["a"], "regret": regret}
        | {"rank": 2, "subsets": 4, "x": 1.0}
        | more
    )


def record(*judged, facts=FACTS, failed=()):
    rows = [standing(each.truth, each.method, facts, [each]) for each in judged]
    rows += [standing("t", name, facts, [], "cannot") for name in failed]
    return StandingsRecord(standings=rows, judged=list(judged), tables={row.truth: facts for row in rows})


def test_methods_seeds_and_tables_are_joined_and_each_is_counted_once():
    first = record(one(regret=0.1), one(seed=1, regret=0.3), failed=["unable", "later"])
    both = joined([first, record(one(seed=1, regret=0.1), one("other"), one(truth="u"), one("later"))])
    rows = {(row.truth, row.method): row for row in both.standings}
    assert {*rows} == {("t", "m"), ("t", "unable"), ("t", "later"), ("t", "other"), ("u", "m")}
    assert rows["t", "m"].seeds == 2
    assert rows["t", "m"].regret == pytest.approx(0.1)  # seed 1 was judged again
    assert rows["t", "m"].relative == pytest.approx(0.5)
    assert (rows["t", "unable"].failed, rows["t", "unable"].seeds) == ("cannot", 0)
    assert (rows["t", "later"].failed, rows["t", "later"].seeds) == ("", 1)
    assert joined([both, first, both]).to_json() == both.to_json()


def test_what_was_trained_stays_so_where_the_choice_is_the_same():
    trained = record(one(score=0.9, alone=0.8))
    assert joined([trained, record(one())]).standings[0].delivered == pytest.approx(0.5)
    assert math.isnan(joined([trained, record(one(x=2.0))]).standings[0].delivered)
    more = joined([trained, record(one(seed=1))]).standings[0]
    assert (more.seeds, more.trained) == (2, 1)


def test_standings_of_different_tables_do_not_go_together():
    other = TableFacts(subsets=4, gap=0.2, content="b")
    with pytest.raises(RunMismatch, match="two different truth tables"):
        joined([record(one()), record(one("n"), facts=other)])
    unknown = TableFacts(subsets=4, gap=0.3)
    with pytest.raises(RunMismatch, match=r"gap of 0\.2, another by one of 0\.3"):
        joined([record(one()), record(one("n"), facts=unknown)])
    assert len(joined([record(one()), record(one("n"), facts=FACTS)]).standings) == 2


def test_a_file_of_version_1_has_its_gaps_and_joins_one_of_today(tmp_path):
    old = record(one(regret=0.1), one(truth="best", regret=0.0)).to_json() | {"version": 1}
    del old["tables"]
    (tmp_path / "standings.json").write_text(json.dumps(old))
    read = StandingsRecord.read(tmp_path)
    assert read.tables["t"].gap == pytest.approx(0.2)
    assert math.isnan(read.tables["best"].gap)
    today = record(one("n"), one("n", truth="best"))
    both = joined([read, today])
    assert [row.relative for row in both.standings if row.method == "n"] == [pytest.approx(0.5)] * 2
    assert both.tables == today.tables


def test_a_directory_keeps_what_it_holds(tmp_path):
    grown(tmp_path, [record(one())])
    assert len(grown(tmp_path, [record(one("n"))]).standings) == 2
    assert len(StandingsRecord.read(tmp_path).standings) == 2
    assert not list(tmp_path.glob(".*"))


@pytest.fixture
def score(small_digits, monkeypatch, tmp_path):
    _, path, _, cache = small_digits
    monkeypatch.setenv("SIDEQUEST_CACHE", str(cache))

    def run(*arguments, out="scores"):
        said = CliRunner().invoke(app, ["score", *arguments, "-o", str(tmp_path / out), "--workers", "1"])
        return said, StandingsRecord.read_if_there(tmp_path / out)

    def on_digits(methods, *arguments, out="scores"):
        return run("-m", methods, "--truth", str(path), "--seeds", "1", *arguments, out=out)

    run.on_digits = on_digits
    return run


def test_a_run_grows_by_the_same_command_with_other_methods_and_seeds(score, monkeypatch, tmp_path):
    said, first = score.on_digits("single,gradts-thres", "--train")
    assert said.exit_code == 0, said.output
    assert "gradts-thres: " in said.output
    said, _ = score.on_digits("all", "--train")
    assert said.exit_code == 0, said.output

    def never(*_, **__):
        raise AssertionError("it is done")

    with monkeypatch.context() as patch:
        patch.setattr(finals, "train_recipe", never)
        said, again = score.on_digits("single,all", "--train")
        assert said.exit_code == 0, said.output
        failed, _ = score.on_digits("all", "--train", "--first-seed", "7")  # the control: this one is not
        assert "it is done" in failed.output
    by_name = {row.method: row for row in again.standings}
    assert {*by_name} == {"single", "gradts-thres", "all"}
    assert by_name["single"] == first.standings[0]
    assert by_name["gradts-thres"].seeds == 0
    said, more = score.on_digits("all", "--first-seed", "7")
    assert {row.method: (row.seeds, row.trained) for row in more.standings}["all"] == (2, 1)
    assert {row.method for row in more.standings} == {*by_name}
    assert (tmp_path / "scores" / "standings.csv").read_text().count("\n") == 1 + 3


def test_a_device_that_is_not_there_is_refused_before_any_work(score, monkeypatch, tmp_path):
    monkeypatch.setenv("SIDEQUEST_DEVICE", "cpu")  # put back at the end, whatever --device has set
    said, record = score.on_digits("single,all", "--device", "xpu")
    assert record is None
    assert isinstance(said.exception, SettingsError)  # which ends the command with 2
    assert str(said.exception) == "--device xpu: this machine's torch finds no xpu device; leave it out or use cpu"
    assert not list(tmp_path.rglob("*"))


def test_runs_in_several_directories_are_shown_together_without_any_work(score, tmp_path):
    score.on_digits("single", out="one")
    score.on_digits("all", out="two")
    beside = ["--with", str(tmp_path / "one"), "--with", str(tmp_path / "two" / "standings.json")]
    said, both = score(*beside, out="both")
    assert said.exit_code == 0, said.output
    assert [row.method for row in both.standings] == ["single", "all"]
    assert (tmp_path / "both" / "regret-against-cost.html").exists()
    assert {*(tmp_path / "both").iterdir()} & {tmp_path / "both" / "truth", tmp_path / "both" / "digits"} == set()


@pytest.mark.parametrize(
    "arguments", [[], ["-m", "single"], ["--truth", "digits"], ["--with", "missing"], ["--with", "{here}"]]
)
def test_bad_input_is_one_sentence(score, arguments, tmp_path):
    (tmp_path / "standings.json").write_text('{"standings": 3}')
    said, _ = score(*[each.format(here=tmp_path) for each in arguments])
    assert isinstance(said.exception, SettingsError)  # exit code 2 and its first line: tests/cli
    assert not (tmp_path / "scores" / "standings.json").exists()


def test_where_nothing_helps_what_a_trained_choice_did_is_said_in_the_metric(capsys):
    nothing = TableFacts(subsets=4, gap=math.nan, content="a")
    harmful = [one(score=0.7, alone=0.8), one(seed=1, score=0.6, alone=0.8)]
    found = joined([record(*harmful, one("untrained"), facts=nothing)]).standings
    row = next(row for row in found if row.method == "m")
    assert math.isnan(row.delivered)
    assert row.gained == pytest.approx(-0.15)
    assert row.gained_low < row.gained < row.gained_high
    print_standings(found)
    shown = capsys.readouterr().out
    assert "-0.1500 ±" in shown or "−0.1500 ±" in shown
    assert ",-0.15" in standings_csv(found)
    print_standings(joined([record(one(), facts=nothing)]).standings)  # the control: nothing was trained
    assert "over the primary alone" not in capsys.readouterr().out
