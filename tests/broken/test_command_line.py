"""Values on the command line that cannot be, and outputs that could not be written: refused before any work."""

from __future__ import annotations

import os

import pytest

from tests.broken.conftest import copy_of

SELECT = ["select", "{images}", "-m", "single", "-o", "out"]
COMPARE = ["compare", "{images}", "-m", "heu-size", "-o", "out"]
ORACLE = ["oracle", "{images}", "-o", "truth.json"]
TUNE = ["tune", "{images}", "-o", "tuning.json"]
SCORE = ["score", "-m", "single", "--truth", "{truth}"]
TRAIN = ["train", "{run}", "-o", "out"]

VALUES: dict[str, tuple[list[str], list[str]]] = {
    "a method that is none": (["select", "{images}", "-m", "singel", "-o", "out"], ["singel", "single"]),
    "an empty method": (["select", "{images}", "-m", "", "-o", "out"], ["method"]),
    "a method file that is none": (["select", "{images}", "-m", "no.py:A", "-o", "out"], ["no.py"]),
    "a method file without a class": (["select", "{images}", "-m", "code.py:", "-o", "out"], ["code.py"]),
    "a method of another class": (["select", "{images}", "-m", "code.py:A", "-o", "out"], ["code.py:A", "Method"]),
    "a method file with a fault": (["select", "{images}", "-m", "fault.py:A", "-o", "out"], ["fault.py", "broken"]),
    "a method file that ends Python": (["select", "{images}", "-m", "exit.py:A", "-o", "out"], ["exit.py"]),
    "a method file that is no Python": (["select", "{images}", "-m", "data.csv:A", "-o", "out"], ["data.csv"]),
    "a method file in nobody's home": (
        ["select", "{images}", "-m", "~nosuchuser/a.py:A", "-o", "out"],
        ["~nosuchuser"],
    ),
    "a method file that is a folder": (["select", "{images}", "-m", "folder:A", "-o", "out"], ["folder"]),
    "methods that are none": (["compare", "{images}", "-m", "single,naive", "-o", "out"], ["naive"]),
    "a negative seed": ([*SELECT, "--seed", "-1"], ["seed", "-1"]),
    "a seed of words": ([*SELECT, "--seed", "one"], ["seed", "one"]),
    "a seed of 10^40": ([*SELECT, "--seed", "1" + "0" * 40], ["seed"]),
    "a seed of half": ([*SELECT, "--seed", "0.5"], ["seed", "0.5"]),
    "a negative seed to train": ([*TRAIN, "--seed", "-1"], ["seed", "-1"]),
    "a negative seed to tune": ([*TUNE, "--seed", "-1"], ["seed", "-1"]),
    "no seeds": ([*COMPARE, "--seeds", "0"], ["seeds", "0"]),
    "10^9 seeds": ([*COMPARE, "--seeds", "1000000000"], ["seeds"]),
    "10^9 seeds of an oracle": ([*ORACLE, "--seeds", "1000000000"], ["seeds"]),
    "10^9 seeds to score": ([*SCORE, "--seeds", "1000000000"], ["seeds"]),
    "seeds of words": ([*COMPARE, "--seeds", "few"], ["seeds", "few"]),
    "no workers": ([*COMPARE, "--workers", "0"], ["workers", "0"]),
    "negative workers": ([*COMPARE, "--workers", "-1"], ["workers", "-1"]),
    "10^6 workers": ([*COMPARE, "--workers", "1000000"], ["workers"]),
    "no workers to select": ([*SELECT, "--workers", "0"], ["workers", "0"]),
    "no workers of an oracle": ([*ORACLE, "--workers", "0"], ["workers", "0"]),
    "negative workers to score": ([*SCORE, "--workers", "-2"], ["workers", "-2"]),
    "a negative budget": ([*COMPARE, "--budget", "-1"], ["budget", "-1"]),
    "a budget of NaN": ([*COMPARE, "--budget", "nan"], ["budget", "nan"]),
    "an infinite budget": ([*COMPARE, "--budget", "inf"], ["budget", "inf"]),
    "a budget of words": ([*COMPARE, "--budget", "some"], ["budget", "some"]),
    "no sample": ([*ORACLE, "--sample", "0"], ["sample", "0"]),
    "a sample of 10^12": ([*ORACLE, "--sample", "1000000000000"], ["sample"]),
    "one training": ([*TUNE, "--trainings", "1"], ["trainings", "1"]),
    "tune 1": ([*COMPARE, "--tune", "1"], ["--tune", "1"]),
    "no trainings": ([*TUNE, "--trainings", "0"], ["trainings", "0"]),
    "10^9 trainings": ([*TUNE, "--trainings", "1000000000"], ["trainings"]),
    "tune 0": ([*COMPARE, "--tune", "0"], ["--tune", "0"]),
    "tune -1": ([*COMPARE, "--tune", "-1"], ["--tune", "-1"]),
    "tune of 5,000 digits": ([*COMPARE, "--tune", "9" * 5000], ["--tune"]),
    "tune of other digits": ([*COMPARE, "--tune", "٣"], ["--tune"]),
    "tune by no file": ([*COMPARE, "--tune", "nowhere.json"], ["--tune", "nowhere.json"]),
    "tune by a folder": ([*COMPARE, "--tune", "folder"], ["--tune", "folder"]),
    "tune by a pipe": ([*COMPARE, "--tune", "pipe"], ["--tune", "pipe"]),
    "a primary that is none": ([*COMPARE, "--primary", "mian"], ["mian", "main"]),
    "a primary twice": ([*COMPARE, "--primary", "main,main"], ["main", "twice"]),
    "a kind that is none": ([*SELECT, "--model", "convnett"], ["convnett", "convnet"]),
    "an empty kind": ([*SELECT, "--model", ""], ["kind"]),
    "a kind of texts": ([*SELECT, "--model", "pooled", "--encoder", "{encoder}"], ["image", "pooled"]),
    "custom without a factory": ([*SELECT, "--model", "custom"], ["factory"]),
    "an encoder for a convnet": ([*SELECT, "--encoder", "other"], ["encoder", "convnet"]),
    "a tracker that is none": ([*SELECT, "--track", "paper"], ["paper"]),
    "a device that is none": ([*SELECT, "--device", "abacus"], ["abacus"]),
    "a device with a path": ([*SELECT, "--device", "../../x"], ["../../x"]),
    "a device of 10^9": ([*SELECT, "--device", "cuda:999999999"], ["cuda"]),
    "storage that is none": ([*SELECT, "-m", "heu-size", "--storage", "mysq://x"], ["storage", "mysq"]),
    "storage that is a word": ([*SELECT, "-m", "heu-size", "--storage", "trials"], ["storage", "trials"]),
    "storage without a driver": ([*SELECT, "-m", "heu-size", "--storage", "postgresql://h/x"], ["PostgreSQL"]),
    "an unknown option": ([*SELECT, "--sede", "1"], ["--sede"]),
    "an unknown command": (["selct", "{images}"], ["selct"]),
    "two suites": (["check", "{images}", "{images}"], ["argument"]),
    "an export that is none": (["export", "{run}", "--to", "excel", "-o", "out"], ["excel"]),
    "figures that are none": (["report", "{copy}", "--figures", "gif"], ["gif"]),
    "no figures": (["report", "{copy}", "--figures", ""], ["figures"]),
    "no rows to show": (["show", "{run}", "--count", "0"], ["count", "0"]),
    "a width of one": (["show", "{run}", "--width", "1"], ["width", "1"]),
    "10^40 rows to show": (["show", "{run}", "--count", "1" + "0" * 40], ["count"]),
    "a table of no runs": (["fit", "data.csv"], ["data.csv"]),
    "a table that is not there": (["fit", "nowhere.csv"], ["nowhere.csv"]),
    "a table that is a pipe": (["fit", "pipe"], ["pipe"]),
    "a score that is none": (["fit", "runs.csv", "--score", "acuracy"], ["acuracy", "accuracy"]),
    "a score of 1e308": (["fit", "large-score.csv"], ["large-score.csv", "accuracy", "1e308"]),
    "an amount of 1e308": (["fit", "large-amount.csv"], ["large-amount.csv", "pos", "1e308"]),
    "an amount of 400 digits": (["fit", "digits.jsonl"], ["digits.jsonl", "pos"]),
    "init of nothing": (["init", "nowhere.csv"], ["nowhere.csv"]),
    "init of a pipe": (["init", "pipe"], ["pipe"]),
    "init of an empty folder": (["init", "folder"], ["folder"]),
    "init of no primary": (["init", "runs.csv", "--primary", "x"], ["x"]),
    "init over a file": (["init", "runs.csv", "-o", "data.csv"], ["data.csv", "--force"]),
    "init over a folder": (["init", "runs.csv", "-o", "folder", "--force"], ["folder"]),
}

SETTINGS: dict[str, list[str]] = {
    "novalue": ["novalue", "name=value"],
    "=3": ["name=value"],
    "train.=3": ["train"],
    "trian.epochs=3": ["trian", "train"],
    "train.epoch=3": ["epoch", "epochs"],
    "train.epochs=inf": ["epochs", "inf"],
    "train.epochs=.inf": ["epochs", "inf"],
    "train.epochs=nan": ["epochs", "nan"],
    "train.epochs=-1": ["epochs", "-1"],
    "train.epochs=0": ["epochs", "0"],
    "train.epochs=1e300": ["epochs"],
    "train.epochs=": ["epochs"],
    "train.epochs=[1]": ["epochs"],
    "train.epochs=true": ["epochs"],
    "train.steps=1e18": ["steps"],
    "train.steps=0.5": ["steps", "0.5"],
    "train.batch_size=0": ["batch_size", "0"],
    "train.batch_size=1e15": ["batch_size"],
    f"train.batch_size={'9' * 5000}": ["batch_size"],
    "train.learning_rate=inf": ["learning_rate", "inf"],
    "train.learning_rate=0": ["learning_rate", "0"],
    "train.learning_rate=-1e-3": ["learning_rate"],
    "train.momentum=1": ["momentum", "1"],
    "train.warmup=2": ["warmup", "2"],
    "train.weight_decay=nan": ["weight_decay", "nan"],
    "train.clip=-1": ["clip", "-1"],
    "train.clip=inf": ["clip", "inf"],
    "train.patience=0": ["patience", "0"],
    "train.max_batches=1e15": ["max_batches"],
    "train.optimizer=adam": ["optimizer", "adam"],
    "train.decay=fast": ["decay", "fast"],
    "train.loss_scale={main: -1}": ["loss_scale", "-1"],
    "train.loss_scale={main: .nan}": ["loss_scale", "nan"],
    "train.loss_scale={mian: 2}": ["loss_scale", "mian", "main"],
    "train.loss_scale=3": ["loss_scale", "3"],
    "train.evaluations=0": ["evaluations", "0"],
    "model.hidden=1e12": ["hidden"],
    "model.hidden=0": ["hidden", "0"],
    "model.channels=[0, 3]": ["channels"],
    "model.channels=[1, 2, 3]": ["channels"],
    "model.channels=5": ["channels", "5"],
    "model.channels=[1000000000, 1000000000]": ["channels"],
    "model.dropout=1": ["dropout", "1"],
    "model.shift=-1": ["shift", "-1"],
    "model.hiden=3": ["hiden", "hidden"],
    "model.encoder=other": ["encoder"],
    "model.kind=[a]": ["kind"],
    "gamma=1": ["gamma"],
    "a.b.c=1": ["a"],
    "train.epochs=" + "[" * 3000: ["epochs"],
    "train.epochs=" + "x" * 20_000: ["epochs"],
    "train.epochs=&a [*a]": ["epochs"],
    "train.epochs=2026-13-45": ["epochs"],
    "train.epochs=\ud800": ["epochs"],
}


def filled(arguments: list[str], good, place) -> list[str]:
    names = {
        "{images}": good.images,
        "{texts}": good.texts,
        "{run}": good.run,
        "{truth}": good.truth,
        "{copy}": place / "copy",
        "{encoder}": "minilm",
    }
    return [str(names.get(argument, argument)) for argument in arguments]


@pytest.fixture
def furnished(good, place, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_DEVICE", "cpu")  # put back at the end, whatever --device has set
    (place / "folder").mkdir()
    (place / "data.csv").write_text("a,b\n1,2\n")
    (place / "runs.csv").write_text("accuracy,pos\n" + "".join(f"0.{i},{i % 2}\n" for i in range(1, 9)))
    (place / "large-score.csv").write_text("accuracy,pos\n" + "1e308,1\n-1e308,0\n" * 3)
    (place / "large-amount.csv").write_text("accuracy,pos\n" + "0.5,1e308\n0.4,0\n0.3,1\n" * 2)
    rows = [f'{{"accuracy": 0.{i}, "pos": {i % 2 * 10**400}}}\n' for i in range(1, 9)]
    (place / "digits.jsonl").write_text("".join(rows))
    (place / "code.py").write_text("class A: pass\n")
    (place / "fault.py").write_text("raise RuntimeError('broken')\n")
    (place / "exit.py").write_text("raise SystemExit(0)\n")
    os.mkfifo(place / "pipe")
    return place


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_cannot_be_is_refused(name, good, furnished, refused):
    arguments, says = VALUES[name]
    if "{copy}" in arguments:
        copy_of(good.run, furnished / "copy")
    refused(filled(arguments, good, furnished), says)


@pytest.mark.parametrize(
    "assignment", SETTINGS, ids=[name[:40].encode("utf-8", "replace").decode() for name in SETTINGS]
)
def test_a_setting_that_cannot_be_is_refused(assignment, good, place, refused):
    refused([*filled(SELECT, good, place), "--set", assignment], SETTINGS[assignment])


# name → (variables of the environment, what the message says)
ENVIRONMENTS: dict[str, tuple[dict[str, str], list[str]]] = {
    "a cache that is a device": ({"SIDEQUEST_CACHE": "/dev/null"}, ["SIDEQUEST_CACHE", "/dev/null"]),
    "a cache below a device": ({"SIDEQUEST_CACHE": "/dev/null/x"}, ["SIDEQUEST_CACHE", "/dev/null"]),
    "a cache that is a file": ({"SIDEQUEST_CACHE": "data.csv"}, ["SIDEQUEST_CACHE", "data.csv", "file"]),
    "a cache that is a pipe": ({"SIDEQUEST_CACHE": "pipe"}, ["SIDEQUEST_CACHE", "pipe"]),
    "a cache by a long name": ({"SIDEQUEST_CACHE": "x" * 300}, ["xxx"]),
    "a cache in nobody's home": ({"SIDEQUEST_CACHE": "~nosuchuser/x"}, ["SIDEQUEST_CACHE", "home"]),
    "seconds of words": ({"SIDEQUEST_CHECKPOINT_SECONDS": "few"}, ["SIDEQUEST_CHECKPOINT_SECONDS", "few"]),
    "negative seconds": ({"SIDEQUEST_CHECKPOINT_SECONDS": "-1"}, ["SIDEQUEST_CHECKPOINT_SECONDS", "-1"]),
    "a device that is none": ({"SIDEQUEST_DEVICE": "abacus"}, ["abacus"]),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_that_cannot_be_is_refused(name, good, furnished, refused, monkeypatch):
    variables, says = ENVIRONMENTS[name]
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    method = "alphavil" if "SECONDS" in str(variables) else "heu-size"
    refused(filled(["select", "{images}", "-m", method, "-o", "out", "--workers", "1"], good, furnished), says)


@pytest.mark.parametrize("given", ["some", "2:a", "nan:a", "-1:a"])
def test_a_share_to_run_again_that_cannot_be_is_refused(given, monkeypatch):
    from sidequest.errors import SettingsError
    from sidequest.search.recheck import is_due

    monkeypatch.setenv("SIDEQUEST_RECHECK", given)
    with pytest.raises(SettingsError, match=f"SIDEQUEST_RECHECK.*{given}"):
        is_due("key")


def test_a_cache_in_the_users_home_is_there(place, monkeypatch):
    from sidequest.files import cache_directory

    monkeypatch.setenv("SIDEQUEST_CACHE", "~/mine")
    assert cache_directory() == place / "mine"


# Where each command writes, and whether it is a file or a directory
OUTPUTS: dict[str, tuple[list[str], str]] = {
    "select": (["select", "{images}", "-m", "single"], "directory"),
    "train": (["train", "{run}"], "directory"),
    "compare": (["compare", "{images}"], "directory"),
    "oracle": (["oracle", "{images}"], "file"),
    "tune": (["tune", "{images}"], "file"),
    "score": (SCORE, "directory"),
    "export": (["export", "{run}", "--to", "jsonl"], "directory"),
    "fit": (["fit", "runs.csv"], "directory"),
    "init": (["init", "runs.csv"], "file"),
}
PLACES: dict[str, str] = {
    "the other kind": "",
    "a pipe": "pipe",
    "below a file": "data.csv/out",
    "below a pipe": "pipe/out",
    "a long name": "x" * 300,
    "a long name below a new folder": "new/" + "x" * 300,
    "a long path": "/".join(["x" * 200] * 30),
    "a link to nowhere": "dangling",
    "a circle": "circle",
    "a device": "/dev/null",
}


@pytest.mark.parametrize("command", OUTPUTS)
@pytest.mark.parametrize("name", PLACES)
def test_an_output_that_cannot_be_is_refused_before_any_work(name, command, good, furnished, refused, monkeypatch):
    """Before any work: whoever trains here fails the test."""
    import sidequest.learning.torch.learner as learner

    def trains(*_: object, **__: object) -> None:
        raise AssertionError("it began to train")

    monkeypatch.setattr(learner.TorchLearner, "train", trains)
    (furnished / "dangling").symlink_to("nowhere/at/all")
    (furnished / "circle").symlink_to("circle")
    arguments, kind = OUTPUTS[command]
    where = ("folder" if kind == "file" else "data.csv") if name == "the other kind" else PLACES[name]
    refused([*filled(arguments, good, furnished), "-o", where], [where[-20:]])
