"""Truth tables: every subset, its signal, and methods judged by it; compared with transparent references."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from sidequest.cli import app
from sidequest.cli.tables import print_truth
from sidequest.errors import RunMismatch, SettingsError, SidequestError
from sidequest.recipe import Phase, Recipe
from sidequest.runs.oracle import mixtures, oracle, some_subsets, stayed
from sidequest.runs.scoring import Truth
from sidequest.runs.truth import SubsetScores, TruthTable, named, signal


def test_all_subsets_of_few_candidates_and_a_sample_of_many():
    assert some_subsets(["b", "a"]) == [(), ("a",), ("b",), ("a", "b")]
    assert len(some_subsets([f"t{i}" for i in range(8)])) == 256
    many = some_subsets([f"t{i}" for i in range(12)])
    assert len(many) == len(set(many)) == 256
    assert () in many
    assert some_subsets([f"t{i}" for i in range(12)]) == many
    assert len(some_subsets(["a", "b", "c"], sample=5)) == 5
    assert len(some_subsets(["a", "b"], sample=100)) == 4


def test_a_subset_that_fails_fails_alone(small_digits, tmp_path, monkeypatch):
    from sidequest.runs import oracle as room

    setup, _, table, cache = small_digits
    monkeypatch.setenv("SIDEQUEST_CACHE", str(cache))
    whole, trained = room.train_once, []

    def breaks(setup, recipe, seed, *rest):
        trained.append(recipe)
        if seed == 1 and len(recipe.tasks) == 3:
            raise ValueError("too much")
        return whole(setup, recipe, seed, *rest)

    monkeypatch.setattr(room, "train_once", breaks)
    with pytest.raises(
        SidequestError, match=r"(?s)1 of 8 trainings failed.*the same command repeats.*seed 1: ValueError: too much"
    ) as error:
        oracle(setup, [0, 1], tmp_path / "t.json", command="c", suite="digits")
    assert len(trained) == 8  # all others ended
    assert "\n- {" in str(error.value)
    monkeypatch.setattr(room, "train_once", whole)
    assert oracle(setup, [0, 1], tmp_path / "t.json", command="c", suite="digits").subsets == table.subsets


def test_signal_equals_a_two_way_analysis_of_variance():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(6, 4)) + np.arange(6)[:, None] * 0.5 + rng.normal(size=(1, 4))
    found = signal(scores)
    # scipy has no two-way analysis; the F test of subsets is that of a linear model with dummies for both
    subset, seed = np.divmod(np.arange(24), 4)
    full = np.column_stack([np.eye(6)[subset], np.eye(4)[seed][:, 1:]])
    reduced = np.column_stack([np.ones(24), np.eye(4)[seed][:, 1:]])

    def residual(design: np.ndarray) -> float:
        return float(((scores.ravel() - design @ np.linalg.lstsq(design, scores.ravel(), rcond=None)[0]) ** 2).sum())

    f = (residual(reduced) - residual(full)) / 5 / (residual(full) / 15)
    assert found.p_value == pytest.approx(stats.f.sf(f, 5, 15), rel=1e-8)
    assert found.within == pytest.approx(residual(full) / 15)


@pytest.mark.statistical
def test_signal_recovers_known_variances_and_calls_noise_noise():
    rng = np.random.default_rng(1)
    found = [
        signal(rng.normal(0, 2, (32, 1)) + rng.normal(0, 5, (1, 5)) + rng.normal(0, 1, (32, 5))) for _ in range(300)
    ]
    assert np.mean([each.between for each in found]) == pytest.approx(4, rel=0.1)
    assert np.mean([each.within for each in found]) == pytest.approx(1, rel=0.05)
    noise = [signal(rng.normal(size=(16, 5))).p_value for _ in range(400)]
    assert np.mean(np.array(noise) < 0.05) == pytest.approx(0.05, abs=0.03)


def test_the_oracle_trains_every_subset_and_keeps_the_numbers(small_digits):
    _, path, table, _ = small_digits
    assert TruthTable.read(path) == table
    assert len(table.subsets) == 4
    assert table.complete
    alone = next(subset for subset in table.subsets if not subset.auxiliaries)
    assert len(alone.report) == 2
    assert table.regret(table.best) == 0
    assert table.rank(table.best) == 1
    ranks = sorted(table.rank(subset.auxiliaries) for subset in table.subsets)
    assert ranks[0] == 1
    assert max(ranks) <= 4
    text = path.read_text()
    assert str(path.parent) not in text


def hand_made(report: dict[tuple[str, ...], list[float]], shares=(0, 1)) -> TruthTable:
    subsets = tuple(SubsetScores(auxiliaries=k, report=v, select=v, x=1.0) for k, v in report.items())
    empty = {"model": {}, "train": {}, "data": {}, "rows": {}}
    names = tuple(sorted({name for key in report for name in key}))
    about = {"command": "", "suite": "s", "primary": "p", "metric": "accuracy", "candidates": names, "complete": True}
    return TruthTable(**about, **empty, seeds=(0, 1, 2), shares=shares, subsets=subsets)


def test_something_helps_only_if_it_does_on_seeds_that_did_not_choose_it():
    helps = hand_made({(): [0.5, 0.5, 0.5], ("a",): [0.6, 0.61, 0.62], ("b",): [0.4, 0.4, 0.4]})
    assert helps.held_out[0] == pytest.approx(0.11)
    assert helps.something_helps
    luck = hand_made({(): [0.5, 0.5, 0.5], ("a",): [0.6, 0.4, 0.5], ("b",): [0.45, 0.56, 0.5]})
    assert luck.gap > 0
    assert not luck.something_helps
    assert luck.oracle_error == pytest.approx(np.std([0.45, 0.56, 0.5], ddof=1) / np.sqrt(3))


def test_trainings_that_left_the_model_as_it_was_are_counted_and_said(small_digits, capsys):
    _, _, table, _ = small_digits
    assert table.untrained == 0
    best, last = (SimpleNamespace(train=SimpleNamespace(keep=keep)) for keep in ("best", "last"))

    def final(*scores):
        return SimpleNamespace(history=[SimpleNamespace(batches=10 * i, score=score) for i, score in enumerate(scores)])

    assert stayed(best, final(0.7, 0.69, 0.66))
    assert not stayed(best, final(0.7, 0.7, 0.66))  # at a tie the trained model is kept
    assert not stayed(best, final(0.7, 0.71))
    assert not stayed(last, final(0.7, 0.69))
    assert not table.mostly_untrained
    print_truth(table)
    assert "before any training" not in capsys.readouterr().out
    print_truth(table.model_copy(update={"untrained": 3}))
    assert "in 3 of 8 trainings" in capsys.readouterr().out


def test_a_table_of_shares_has_every_mixture_and_finds_the_nearest_of_a_recipe():
    assert mixtures(["b", "a"], (0, 1, 3)) == sorted(mixtures(["a", "b"], (0, 1, 3)), key=lambda m: (len(m), m))
    assert len(set(mixtures(["a", "b"], (0, 1, 3)))) == 9
    assert mixtures(["a", "b"], (0, 1)) == some_subsets(["a", "b"])
    assert named(("a", "b", "b", "b")) == "a, 3 b"
    table = hand_made({key: [0.1, 0.2, 0.3] for key in mixtures(["a", "b"], (0, 1, 3))}, (0, 1, 3))

    def nearest(*phases: Phase) -> tuple[str, ...]:
        return table.mixture_of(Recipe(method="m", primary="p", phases=phases))

    assert nearest(Phase(shares={"p": 1})) == ()
    assert nearest(Phase(shares={"p": 2, "a": 1, "b": 5})) == ("a", "b", "b", "b")
    assert nearest(Phase(shares={"p": 1, "a": 4}), Phase(shares={"p": 1})) == ("a", "a", "a")


def test_a_table_of_other_data_is_refused(small_digits, tmp_path):
    _, path, table, _ = small_digits
    assert Truth.read(path).setup.suite.candidates == table.candidates  # the embedded suite has more
    stranger = table.model_copy(update={"candidates": (*table.candidates, "unknown")})
    stranger.write(tmp_path / "stranger.json")
    with pytest.raises(RunMismatch, match="other candidates"):
        Truth.read(tmp_path / "stranger.json")
    changed = table.model_copy(update={"data": {name: {"train": "0" * 64} for name in table.data}})
    changed.write(tmp_path / "changed.json")
    with pytest.raises(RunMismatch, match="data changed"):
        Truth.read(tmp_path / "changed.json")
    (tmp_path / "bad.json").write_text('{"version": 1}')
    with pytest.raises(SettingsError, match="not a truth table"):
        Truth.read(tmp_path / "bad.json")
    with pytest.raises(SettingsError, match="no such truth table"):
        Truth.read(tmp_path / "missing.json")


def test_an_incomplete_table_says_what_it_lacks(small_digits):
    _, _, table, _ = small_digits
    part = table.model_copy(update={"subsets": table.subsets[:2], "complete": False})
    with pytest.raises(SettingsError, match="has no subset"):
        part.regret(table.candidates)


def test_oracle_and_score_as_commands(few_digits, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    short = ["--set", "train.epochs=1", "--set", "train.max_batches=2", "--workers", "1"]
    truth = tmp_path / "truth.json"
    made = CliRunner().invoke(app, ["oracle", "digits", "--seeds", "2", "--sample", "2", "-o", str(truth), *short])
    assert made.exit_code == 0, made.output
    assert "a sample of 2 subsets" in made.output
    out = tmp_path / "scores"
    scored = CliRunner().invoke(
        app, ["score", "-m", "single,all", "--truth", str(truth), "--seeds", "1", "-o", str(out), "--workers", "1"]
    )
    assert scored.exit_code == 0, scored.output
    assert "truth is noise" in scored.output  # two subsets, two seeds, two batches
    assert json.loads((out / "standings.json").read_text())["noise"] == ["truth"]
    standings = json.loads((out / "standings.json").read_text())["standings"]
    assert {row["method"] for row in standings} == {"single", "all"}
    assert min(row["regret"] for row in standings) == 0
    assert (out / "regret-against-cost.html").exists()


def test_a_suite_file_is_named_relative_to_the_table(tmp_path, small_digits):
    from sidequest.runs.oracle import _relative

    (tmp_path / "suites").mkdir()
    file = tmp_path / "suites" / "mine.yaml"
    file.write_text("primary: a\n")
    assert _relative(str(file), tmp_path / "truth" / "t.json") == "../suites/mine.yaml"
    assert _relative("digits", tmp_path / "t.json") == "digits"
    assert replace(small_digits[0], train=small_digits[0].train) == small_digits[0]
