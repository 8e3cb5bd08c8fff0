"""Tuning the primary alone."""

import dataclasses
import pickle

import numpy as np
import pytest

import sidequest as sq
from sidequest.cli.common import make_setup
from sidequest.cli.common import tuned as with_tuning
from sidequest.errors import Damaged, SettingsError
from sidequest.models import search_spaces
from sidequest.progress import Progress
from sidequest.runs import tuning as tuning_module
from sidequest.runs.setup import Setup
from sidequest.runs.tuning import Tuning, resplit, tune
from sidequest.runs.tuning_choices import choices, model_choices
from sidequest.tasks.loading import load_suite
from sidequest.tasks.memory import make_task
from sidequest.tasks.suite import Suite

pytestmark = pytest.mark.usefixtures("few_digits")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def setup(few_digits):
    """Far too slow a rate: tuning must find a faster one."""
    train = {"epochs": 20, "learning_rate": 1e-3, "patience": None, "batch_size": 32}
    return dataclasses.replace(Setup.of(load_suite("digits"), {"kind": "alphavil"}, train), given=())


@pytest.fixture
def short(setup):
    """As quick as can be, where it does not matter what tuning finds."""
    return dataclasses.replace(setup, train=setup.train.model_copy(update={"epochs": 2}))


@pytest.mark.slow
def test_a_rate_that_is_too_slow_is_replaced_and_the_edge_is_told(setup):
    tuned = tune(setup, 14)
    assert tuned.score > tuned.default_score + 0.05
    assert tuned.chosen["train.learning_rate"] > 2e-3
    assert tuned.trainings <= 14
    assert tuned.x == pytest.approx(
        sum(len(tried.scores) * tried.settings.get("train.epochs", 20) / 20 for tried in tuned.tried), rel=0.2
    )
    applied = tuned.apply(setup)
    assert applied.train.learning_rate == tuned.chosen["train.learning_rate"]
    assert "shared by all methods" in applied.tuning
    space = {"train.learning_rate": search_spaces.Range(1.0, 10.0)}
    assert search_spaces.edges(space, {"train.learning_rate": 9.9}) == [
        "train.learning_rate=9.9 lies at the edge of the search from 1 to 10"
    ]
    assert not search_spaces.edges(space, {"train.learning_rate": 3.0})


def test_what_is_said_of_a_comparison_names_an_edge_unless_the_file_was_edited(setup, tmp_path, capsys):
    edge = "train.learning_rate=0.008 lies at the edge of the search from 0.000125 to 0.008"
    found = Tuning(x=6, chosen={"train.learning_rate": 0.008, "model.dropout": 0.3}, at_edge=[edge])
    found.write(tmp_path / "tuning.json")
    assert with_tuning(setup, str(tmp_path / "tuning.json")).tuning.endswith(f"train.learning_rate=0.008; {edge}")
    assert f"warning: {edge}" in capsys.readouterr().err
    found.model_copy(update={"chosen": {"train.learning_rate": 0.004}}).write(tmp_path / "edited.json")
    said = with_tuning(setup, str(tmp_path / "edited.json")).tuning
    assert said == "tuning 6x, shared by all methods: train.learning_rate=0.004"
    assert capsys.readouterr().err == ""


def test_a_second_tuning_trains_nothing_and_another_seed_differs(short, monkeypatch):
    first = tune(short, 5)
    calls = []
    monkeypatch.setattr(tuning_module, "local_trials", lambda setup: calls.append(setup))
    assert tune(short, 5) == first
    assert not calls
    monkeypatch.undo()
    assert tune(short, 5, seed=1).tried != first.tried


@pytest.mark.parametrize(("trainings", "splits", "settings"), [(2, 1, 2), (3, 1, 3), (4, 2, 2)])
def test_a_few_trainings_still_try_other_settings(setup, trainings, splits, settings):
    quick = dataclasses.replace(setup, train=setup.train.model_copy(update={"epochs": 2}))
    tuned = tune(quick, trainings)
    assert (tuned.trainings, tuned.splits) == (trainings, splits)
    assert len(tuned.tried) == settings
    with pytest.raises(SettingsError, match="at least 2 trainings, found 1"):
        tune(quick, 1)


def test_a_killed_tuning_ends_in_the_same_bytes(short, tmp_path, monkeypatch):
    whole = tune(short, 5)
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "another"))

    class Killed(Exception):
        pass

    class Killer(Progress):
        def job(self, done, total, label, result, x):
            if done == 4:
                raise Killed

    with pytest.raises(Killed):
        tune(short, 5, progress=Killer())
    resumed = tune(short, 5)
    assert resumed.model_dump_json() == whole.model_dump_json()


def test_splits_are_of_the_same_rows_and_sizes_and_differ(setup):
    suites = resplit(setup.suite, 0)
    assert len(suites) == 3
    primaries = [suite.tasks[suite.primary] for suite in suites]
    assert len({len(task.train) for task in primaries}) == 1
    counts = [
        np.bincount(np.concatenate([task.train.target, task.splits["select"].target])).tolist() for task in primaries
    ]
    assert counts[0] == counts[1] == counts[2]
    assert len({task.fingerprints["select"] for task in primaries}) == 3
    assert len({task.fingerprints["report"] for task in primaries}) == 1


def test_a_large_select_needs_one_split(setup, monkeypatch):
    monkeypatch.setattr(tuning_module, "ENOUGH_ROWS", 10)
    assert resplit(setup.suite, 0) == [setup.suite]


def test_a_tuning_for_another_model_or_primary_is_refused(setup, tmp_path):
    with pytest.raises(SettingsError, match=r"model\.kind=pooled, the run has alphavil"):
        Tuning(kind="pooled").apply(setup)
    with pytest.raises(SettingsError, match="for the primary 'x'"):
        Tuning(primary="x").apply(setup)
    with pytest.raises(SettingsError, match=r"train\.NAME or model\.NAME"):
        Tuning(chosen={"epochs": 3}).apply(setup)
    with pytest.raises(SettingsError, match="unknown setting 'epoch'"):
        Tuning(chosen={"train.epoch": 3}).apply(setup)
    path = tmp_path / "tuning.json"
    path.write_text("{")
    with pytest.raises(Damaged, match="it is not JSON"):
        Tuning.read(path)


def test_the_file_is_read_back(setup, tmp_path):
    tuned = Tuning(kind="alphavil", chosen={"train.epochs": 2.5})
    tuned.write(tmp_path / "t.json")
    assert Tuning.read(tmp_path / "t.json") == tuned
    assert dataclasses.replace(tuned.apply(setup), tuning=None).train.epochs == 2.5


def test_a_file_that_a_user_edited_is_taken(tmp_path):
    Tuning(kind="alphavil", chosen={"train.epochs": 2.5}).write(tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text()
    (tmp_path / "t.json").write_text(text.replace("2.5", "3.5"))
    assert Tuning.read(tmp_path / "t.json").chosen == {"train.epochs": 3.5}


def test_what_the_user_left_open_in_the_model_is_tried(encoders):
    pairs = {"text": ["a cat", "a dog"] * 8, "text_b": ["the cat", "the mat"] * 8, "label": [0, 1] * 8}
    suite = Suite.of(make_task("pairs", "classification", pairs, report=pairs, primary=True))
    texts = {name: values for name, values in pairs.items() if name != "text_b"}
    single = Suite.of(make_task("texts", "classification", texts, report=texts, primary=True))
    encoder = str(encoders())

    def tried(of, **model):
        return {name: each.values for name, each in model_choices(Setup.of(of, {"encoder": encoder, **model})).items()}

    layers = {"model.layers": (None, 2)}  # of three
    fine_tuned = {"model.pairing": ("cross", "bi"), "model.dropout": (None, 0.0, 0.2), **layers}
    assert tried(suite, kind="hf") == fine_tuned
    assert tried(single, kind="hf") == {name: values for name, values in fine_tuned.items() if name != "model.pairing"}
    assert tried(suite, kind="hf", pairing="bi", dropout=0.1, layers=1) == {}
    assert tried(suite, kind="pooled") == layers
    assert tried(suite, kind="autosem") == {}


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [("pooled", None, 1e-4), ("bilstm", None, 3e-4), ("hf", None, 1e-4), ("pooled", 0.01, None)],
)
def test_the_search_lies_around_the_rate_that_the_model_is_trained_with(encoders, kind, given, expected):
    texts = {"text": ["good cat", "bad dog"] * 20, "label": [0, 1] * 20}
    suite = Suite.of(make_task("texts", "classification", texts, report=texts, primary=True))
    setup = Setup.of(suite, {"kind": kind, "encoder": str(encoders())}, {"learning_rate": given} if given else {})
    rates = tuning_module._Search(setup, 6, 0, None).space.get("train.learning_rate")
    assert (rates and np.sqrt(rates.low * rates.high)) == (expected and pytest.approx(expected))


ALL = {"train.learning_rate", "train.epochs", "train.weight_decay", "model.dropout"}


@pytest.mark.parametrize(
    ("model", "train", "left"),
    [
        ({}, {}, ALL),
        ({"dropout": 0.2}, {"learning_rate": 1e-3}, {"train.epochs", "train.weight_decay"}),
        ({}, {"steps": 4}, ALL - {"train.epochs"}),
        ({}, {"epochs": 1, "weight_decay": 0.1}, {"train.learning_rate", "model.dropout"}),
        ({"dropout": 0.3}, {"batch_size": 16, "learning_rate": None}, ALL - {"model.dropout"}),
    ],
)
def test_what_was_given_is_not_tuned_wherever_it_was_given(model, train, left):
    suite = load_suite("digits")
    of_suite = dataclasses.replace(suite, defaults={"model": {"kind": "convnet", **model}, "train": train})
    pairs = {"model": model, "train": train}.items()
    assigned = [f"{room}.{name}={'null' if x is None else x}" for room, found in pairs for name, x in found.items()]
    shell, _ = make_setup("digits", "convnet", None, assigned)
    for setup in (Setup.of(suite, {"kind": "convnet", **model}, train), Setup.of(of_suite), shell):
        assert {*choices(setup)[0]} == left
        assert {*choices(pickle.loads(pickle.dumps(setup)))[0]} == left


def test_a_tuning_tries_only_what_is_open(tmp_path):
    given = {"learning_rate": 1e-3, "epochs": 1, "max_batches": 2}
    suite = load_suite("digits")
    found = sq.tune(suite, 6, model={"kind": "convnet", "dropout": 0.2}, train=given, progress=False)
    assert {name for tried in found.tried for name in tried.settings} == {"train.weight_decay"}
    # The same numbers as defaults are another search: what it kept is not found.
    open_ = dataclasses.replace(Setup.of(suite, {"kind": "convnet", "dropout": 0.2}, given), given=())
    assert {name for tried in tune(open_, 6).tried for name in tried.settings} == ALL


def test_where_all_is_given_there_is_nothing_to_tune(tmp_path):
    given = {"learning_rate": 1e-3, "steps": 3, "weight_decay": 0.1}
    with pytest.raises(SettingsError, match=r"nothing is left to tune: model\.dropout, train\.epochs, train\.learning"):
        sq.tune("digits", 6, model={"kind": "convnet", "dropout": 0.2}, train=given, progress=False)
    assert not (tmp_path / "cache" / "tunings").exists()


@pytest.mark.integration
def test_a_choice_of_the_model_is_trained_and_said(encoders):
    texts = {"text": ["good cat", "bad dog"] * 20, "label": [0, 1] * 20}
    suite = Suite.of(make_task("texts", "classification", texts, report=texts, primary=True))
    setup = Setup.of(suite, {"kind": "pooled", "encoder": str(encoders())}, {"epochs": 1})
    tuned = tune(setup, 6)
    assert {tried.settings.get("model.layers", "default") for tried in tuned.tried} > {"default"}
    found = tuned.model_copy(update={"chosen": {"model.layers": 1}})
    assert found.apply(setup).model.layers == 1
    found = tuned.model_copy(update={"chosen": {"model.layers": None}})
    assert found.apply(setup).model.layers is None
    assert found.summary.endswith("model.layers=null")
