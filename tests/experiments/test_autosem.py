"""The suites and arms of `python -m experiments autosem`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from experiments import Options, autosem
from experiments.autosem_suites import TAGGING, make_setup, parts
from sidequest.methods import get_method
from sidequest.records.controls import CONTROLS
from sidequest.settings import parse


@pytest.mark.parametrize("small", [True, False])
def test_settings_are_valid_for_their_methods(small):
    for name, part in parts(small).items():
        assert name == part.primary
        assert part.primary not in part.candidates
        assert {*part.guess} <= {*part.candidates}
        for arm in part.arms:
            method, settings = part.method(arm)
            if method not in CONTROLS:
                parse(get_method(method).Settings, settings, method)


def test_every_arm_of_a_seed_comes_before_the_next_seed_and_the_long_control_waits():
    jobs = autosem.jobs_of(Options(Path("out"), primaries=("chunking",), seeds=2))
    assert [job.seed for job in jobs] == [0] * 9 + [1] * 9
    long = next(job for job in jobs if job.method == "single-long")
    assert long.needs == next(job for job in jobs if job.method == "autosem").name
    published = TAGGING.method("autosem as published")[1]
    assert published["as_published"]


def test_the_few_shot_suite(shared_data):
    part = replace(TAGGING, auxiliary_limit=300, report_limit=50)
    suite, other = (make_setup(part, shared_data, seed).suite for seed in (0, 1))
    few = suite["chunking"]
    assert (len(few.train), len(few.splits["select"])) == (200, 1000)
    assert not {*few.train.ids.tolist()} & {*few.splits["select"].ids.tolist()}
    assert few.train.ids.tolist() != other["chunking"].train.ids.tolist()  # rows are drawn for each seed
    assert suite.candidates == ("cola", "ner", "pos", "pos-shuffled")
    pos, mixed = suite["pos"].train, suite["pos-shuffled"].train
    assert pos.columns["tokens"].equals(mixed.columns["tokens"])
    lengths = [pc.list_value_length(rows.target).to_numpy() for rows in (pos, mixed)]
    np.testing.assert_array_equal(*lengths)
    first, second = (rows.target.flatten().to_numpy() for rows in (pos, mixed))
    np.testing.assert_array_equal(np.sort(first), np.sort(second))
    assert np.mean(first == second) < 0.2


def test_tables_of_what_is_done(tmp_path, capsys):
    def kept(method, seed, score):
        cost = {"choose": 1.0, "train": 2.0}
        facts = {"method": method, "task": "chunking", "seed": seed, "report": score, "select": score, "seconds": 1.0}
        return facts | {"metrics": {"span_f1": score}, "x": cost, "auxiliaries": []}

    found = {f"s{seed}": kept("single", seed, 0.5 + 0.1 * seed) for seed in range(3)}
    found |= {f"a{seed}": kept("autosem", seed, 0.52 + 0.1 * seed + 0.001 * seed) for seed in range(3)}
    options = Options(tmp_path, small=True)
    results = autosem.show(options, found)
    (claim,) = results["parts"]["chunking"]["claims"]
    assert (claim["ours"], claim["baseline"], claim["verdict"]) == ("autosem", "single", "helps")
    assert "| Final MTL (autosem) |" in capsys.readouterr().out
    assert autosem.show(options, {}) == {"paper": autosem.PAPER, "parts": {}, "gate": {}}
