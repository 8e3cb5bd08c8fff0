"""compare, select and models in Python: shapes of arguments, results that show themselves, and one message for what is wrong."""

import re

import pandas as pd
import pytest
import torch

import sidequest as sq
from sidequest.errors import SidequestError
from sidequest.runs.setup import Setup
from tests.api.conftest import reviews
from tests.helpers.toy_method import LargestGain

METHODS = ["heu-type", LargestGain(least_gain=0.9)]


@pytest.fixture(scope="module")
def result(suite, tmp_path_factory):
    place = tmp_path_factory.mktemp("compared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIDEQUEST_CACHE", str(place / "cache"))
        return sq.compare(suite, METHODS, seeds=2, directory=str(place / "run"), progress=False)


def test_a_comparison_shows_itself(result, tmp_path):
    shown = repr(result)
    assert shown.startswith("reviews: accuracy on report, 2 seeds\nmethod ")
    assert all(name in shown for name in ("single", "heu-type", "largest-gain", "Verdict: no verdict", "report.html"))
    assert "<td>heu-type</td>" in result._repr_html_()
    frame = result.frame()
    assert {"method", "mean", "low", "high", "difference", "verdict", "x"} <= set(frame.columns)
    assert frame.set_index("method").loc["single", "verdict"] == "baseline"
    copy = result.page(str(tmp_path / "pages" / "report.html"))
    assert copy.read_bytes() == (result.directory / "report.html").read_bytes()


def test_the_same_call_finds_what_is_done_and_leaves_torch_as_it_was(result, suite):
    before, outcome = torch.get_num_threads(), result.directory / "heu-type" / "seed-1" / "outcome.json"
    stamp = outcome.stat().st_mtime_ns
    again = sq.compare(suite, METHODS, seeds=[0, 1], directory=result.directory, progress=False)
    assert again.frame().equals(result.frame())
    assert outcome.stat().st_mtime_ns == stamp
    assert torch.get_num_threads() == before


def test_the_best_choice_is_trained_and_the_model_predicts(result, frame, tmp_path):
    model = result.best.train(progress=False)
    assert model.directory == result.directory / "final" / "model"
    assert "Model of 'reviews'" in repr(model)
    new = reviews(5, 9).drop(columns="stars").set_index("key")
    said = model.predict(new)
    assert list(said.columns) == ["label", "probability_down", "probability_up"]
    assert list(said.index) == list(new.index)
    assert said.iloc[:, 1:].sum(axis=1).to_numpy() == pytest.approx(1.0, abs=1e-6)
    assert list(model.predict(new, probabilities=False).columns) == ["label"]
    saved = model.save(str(tmp_path / "model"))
    pd.testing.assert_frame_equal(sq.load(str(saved)).predict(new), said)
    assert model.score(reviews(30, 8))["accuracy"] >= 0
    new.to_csv(tmp_path / "new.csv")
    assert sq.load(saved).predict(tmp_path / "new.csv")["label"].tolist() == said["label"].tolist()


def test_a_selection_is_trained_with_another_model(suite, tmp_path):
    chosen = sq.select(suite, "all", train=sq.TrainSettings(epochs=1), directory=tmp_path / "all", progress=False)
    assert "reviews with other, third" in repr(chosen)
    assert (tmp_path / "all" / "report.html").is_file()
    model = chosen.train(model={"hidden": 5}, progress=False)
    assert model.directory == tmp_path / "all" / "trained-pooled" / "model"
    assert model.report is not None


def test_without_a_directory_equal_calls_meet_and_others_do_not(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = sq.select(suite, "all", progress=False)
    assert first.directory.parts[0] == "runs"
    assert sq.select(suite, "all", progress=False).directory == first.directory
    assert sq.select(suite, "all", train={"epochs": 3}, progress=False).directory != first.directory


def test_a_listener_hears_of_every_cell(suite, tmp_path):
    class Listener(sq.Progress):
        heard: list[str] = []

        def job(self, done, total, label, result, x):
            self.heard.append(label)

    sq.compare(suite, [], seeds=1, directory=tmp_path / "run", progress=Listener())
    assert any("random-subset" in label for label in Listener.heard)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda suite, out: sq.compare(suite, "heu-size", directory=out), "a list of names, classes or objects"),
        (lambda suite, out: sq.compare(suite, ["heu-sise"], directory=out), "Did you mean 'heu-size'?"),
        (lambda suite, out: sq.compare(suite, [], seeds="five", directory=out), "seeds: how many"),
        (lambda suite, out: sq.compare(suite, [], seeds=0, directory=out), "seeds: how many"),
        (lambda suite, out: sq.compare(suite, [], workers=0, directory=out), "workers: a whole number from 1"),
        (
            lambda suite, out: sq.compare(3, [], directory=out),
            "a suite is a Suite, a Setup or the path of a suite file",
        ),
        (lambda suite, out: sq.compare("nowhere.yaml", [], directory=out), "no such suite file"),
        (lambda suite, out: sq.compare(suite, [], model="poled", directory=out), "Did you mean 'pooled'?"),
        (lambda suite, out: sq.compare(suite, [], model=3, directory=out), "model: a dictionary or a ModelSettings"),
        (
            lambda suite, out: sq.compare(suite, [], train=["epochs"], directory=out),
            "train: a dictionary or a TrainSettings",
        ),
        (lambda suite, out: sq.compare(suite, [], train={"epoch": 1}, directory=out), "Did you mean 'epochs'?"),
        (lambda suite, out: sq.compare(suite, [], directory=3), "directory: a path, found int 3"),
        (lambda suite, out: sq.compare(suite, [], track=["tensorbord"], directory=out), "Did you mean 'tensorboard'?"),
        (lambda suite, out: sq.compare(Setup.of(suite), [], model="pooled", directory=out), "a setup has its model"),
        (lambda suite, out: sq.select(suite, ["all"], directory=out), "a subclass of sidequest.Method"),
        (lambda suite, out: sq.select(suite, "all", settings=[1], directory=out), "a dictionary or a settings object"),
        (lambda suite, out: sq.select(suite, "all", seed=-1, directory=out), "seed: a whole number from 0"),
        (lambda suite, out: sq.load(out), "not a model directory"),
    ],
)
def test_what_is_wrong_is_one_message_before_any_work(suite, tmp_path, call, says):
    with pytest.raises(SidequestError, match=re.escape(says)):
        call(suite, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_tuning_is_made_once_and_given_to_what_follows(suite, result, tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    found = sq.tune(suite, 2, progress=False)
    assert (found.trainings, len(found.tried)) == (2, 2)
    assert sq.tune(suite, 2, progress=False) == found
    rate = found.model_copy(update={"chosen": {"train.learning_rate": 0.0042}})
    rate.write(tmp_path / "tuning.json")
    for given in (rate, tmp_path / "tuning.json", str(tmp_path / "tuning.json")):
        chosen = sq.select(suite, "single", tune=given, directory=tmp_path / "run", progress=False)
        assert chosen.setup.train.learning_rate == 0.0042
        assert "shared by all methods" in chosen.setup.tuning
    compared = sq.compare(suite, ["heu-type"], seeds=1, tune=rate, directory=tmp_path / "compared", progress=False)
    assert compared.setup.train.learning_rate == 0.0042
    assert (
        sq.select(suite, "single", tune=2, directory=tmp_path / "other", progress=False).setup.tuning == found.summary
    )
    with pytest.raises(SidequestError, match="2 to 10000 trainings, found 1"):
        sq.select(suite, "single", tune=1)
    with pytest.raises(
        SidequestError, match=r"tune: a number of trainings, a tuning or the file of one; found .*nowhere"
    ):
        sq.compare(suite, tune="nowhere.json")


def test_a_final_model_is_tuned_by_itself(result, tmp_path):
    tuning = sq.Tuning(primary="reviews", chosen={"train.epochs": 1.0, "train.learning_rate": 0.0042})
    plain = result.best.train(directory=tmp_path / "plain", progress=False)
    tuned = result.best.train(directory=tmp_path / "tuned", tune=tuning, progress=False)
    weights = [(model.directory / "model.safetensors").read_bytes() for model in (plain, tuned)]
    assert weights[0] != weights[1]
    recipe = sq.Recipe.read(tmp_path / "tuned" / "recipe.json")
    assert recipe.provenance["train"]["learning_rate"] == 0.0042
