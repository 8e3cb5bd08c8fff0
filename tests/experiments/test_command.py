"""`python -m experiments`: the list, and one message for bad input."""

import importlib
from pathlib import Path

import pytest

from experiments import EXPERIMENTS, TAKES, Options
from experiments.__main__ import main
from sidequest.errors import SidequestError
from sidequest.model_settings import PooledSettings


def test_without_a_name_it_lists_the_experiments(capsys):
    assert main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["polices"], "Did you mean 'policies'?"),
        (["policies", "--small"], "--data (or SIDEQUEST_DATA)"),
        (["bandit", "--encoder", "bert"], "--encoder: the experiment 'bandit' takes none"),
        (["policies", "--primary", "rte"], "--primary: the experiment 'policies' takes none; autosem, gradts"),
    ],
)
def test_bad_input_gives_one_message_and_code_2(monkeypatch, capsys, tmp_path, arguments, says):
    monkeypatch.delenv("SIDEQUEST_DATA", raising=False)
    assert main([*arguments, "-o", str(tmp_path / "out")]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("name", TAKES)
def test_what_an_experiment_takes_reaches_it(monkeypatch, tmp_path, name):
    given = []
    monkeypatch.setattr(importlib.import_module(f"experiments.{name}"), "main", lambda options: given.append(options))
    values = {"encoder": ["--encoder", "bert"], "primaries": ["--primary", "rte, mrpc"], "only": ["--only", "glue"]}
    wanted = [word for field in TAKES[name] for word in values[field]]
    assert main([name, "-o", str(tmp_path), *wanted]) == 0
    (options,) = given
    assert options.encoder == "bert"
    assert options.primaries == (("rte", "mrpc") if "primaries" in TAKES[name] else None)
    assert options.only == (("glue",) if "only" in TAKES[name] else None)


def test_names_are_chosen_in_the_experiments_order_and_must_be_known():
    options = Options(Path("out"), encoder="bert", primaries=("mrpc", "rte"))
    assert options.of_primaries(["rte", "stsb", "mrpc"]) == ("rte", "mrpc")
    assert options.of_parts(["one", "two"]) == ("one", "two")
    with pytest.raises(SidequestError, match="unknown primary of this experiment 'mrpc'"):
        options.of_primaries(["rte", "stsb"])
    changed = options.with_encoder(PooledSettings(hidden=5))
    assert (changed.encoder, changed.hidden) == ("bert", 5)
    assert Options(Path("out")).with_encoder(PooledSettings()) == PooledSettings()
