"""`python -m experiments`: the list, and one message for bad input."""

import importlib
from pathlib import Path

import pytest

from experiments import EXPERIMENTS, TAKES, Options, status_lines
from experiments.__main__ import main
from experiments.jobs import RESULTS
from sidequest.errors import SidequestError
from sidequest.files import read_json
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
    module = importlib.import_module(f"experiments.{name}")
    monkeypatch.setattr(module, "jobs_of", lambda options: [])
    monkeypatch.setattr(module, "shared_of", lambda options: None)
    monkeypatch.setattr(module, "show", lambda options, found: given.append(options))
    values = {"encoder": ["--encoder", "bert"], "primaries": ["--primary", "rte, mrpc"], "only": ["--only", "glue"]}
    wanted = [word for field in TAKES[name] for word in values[field]]
    assert main([name, "-o", str(tmp_path), "--first-seed", "7", *wanted]) == 0
    (options,) = given
    assert options.encoder == "bert"
    assert options.primaries == (("rte", "mrpc") if "primaries" in TAKES[name] else None)
    assert options.only == (("glue",) if "only" in TAKES[name] else None)
    assert list(options.seed_range(2)) == [7, 8]
    assert options.store(name).size == "full-bert"


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_jobs_are_listed_without_data_and_have_names_of_their_own(name, small, tmp_path):
    jobs = importlib.import_module(f"experiments.{name}").jobs_of(Options(tmp_path, small=small))
    assert len({job.name for job in jobs}) == len({name.casefold() for name in (job.name for job in jobs)}) == len(jobs)
    assert all(job.needs in {other.name for other in jobs} for job in jobs if job.needs is not None)


def test_status_says_what_is_missing(capsys, tmp_path):
    lines = status_lines(Options(tmp_path, results=tmp_path / "none"))
    assert len(lines) == 2 * len(EXPERIMENTS)
    assert all(line.endswith("missing") for line in lines)


def test_every_stored_result_is_a_job_of_its_experiment():
    """A file that no job asks for is left over from an earlier plan: delete it, or it is counted by eye."""
    for name in EXPERIMENTS:
        for path in sorted((RESULTS / name).glob("*/*.json")):
            kept = read_json(path)
            assert {"method", "task", "seed", "seconds", "plan", "code", "date"} <= {*kept}, path
            assert path.stat().st_size < 200_000, path


def test_names_are_chosen_in_the_experiments_order_and_must_be_known():
    options = Options(Path("out"), encoder="bert", primaries=("mrpc", "rte"))
    assert options.of_primaries(["rte", "stsb", "mrpc"]) == ("rte", "mrpc")
    assert options.of_parts(["one", "two"]) == ("one", "two")
    with pytest.raises(SidequestError, match="unknown primary of this experiment 'mrpc'"):
        options.of_primaries(["rte", "stsb"])
    changed = options.with_encoder(PooledSettings(hidden=5))
    assert (changed.encoder, changed.hidden) == ("bert", 5)
    assert Options(Path("out")).with_encoder(PooledSettings()) == PooledSettings()
