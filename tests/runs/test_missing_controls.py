"""A control that should be there and is not: it is not beaten by being away, and readers are told."""

import numpy as np
import pytest

from sidequest.cli.tables import print_comparison
from sidequest.records import verdicts
from sidequest.records.comparisons import MissingCell
from sidequest.report.reading import Compared
from sidequest.report.sections import comparison_verdict
from sidequest.runs.summarising import summarise
from tests.runs.test_comparing import BASE, SETUP, outcomes, summary


@pytest.mark.parametrize("control", ["single-long", "probe"])
def test_a_control_whose_cells_failed_is_not_beaten(control, capsys, tmp_path):
    there = {"single": BASE, "better": BASE + 0.05 + 0.001 * np.arange(5), "worse": BASE - 0.1}
    failed = [MissingCell(method=control, seed=seed, error="RuntimeError: no luck") for seed in range(5)]
    found = summarise(SETUP, outcomes(there), list(there), range(5), missing=failed)
    assert {row.method: row.verdict for row in found.rows}["better"] == "not shown"
    assert found.row("worse").verdict == "hurts"  # for which the baseline is enough
    to_beat = f"single and {control}"
    assert found.verdict == f"not shown: {control} is missing, and to help a method has to beat {to_beat}"
    note = f"{control} is missing, so no method can be shown to help: it would have to beat {to_beat}."
    assert note in verdicts.notes(found)
    print_comparison(found)
    shell = " ".join(capsys.readouterr().out.split())
    assert note in shell
    assert found.verdict in shell
    assert found.verdict[1:] in comparison_verdict(Compared(tmp_path, found)).headline
    # Nothing failed: it is simply not there, as where the model has no probe.
    assert summary(there).row("better").verdict == "helps"
    # It should be there, and there was nothing to give it its length.
    assert summarise(SETUP, outcomes(there), list(there), range(5), controls=[control]).verdict == found.verdict


def test_a_control_without_a_common_seed_is_not_beaten():
    there = {"single": BASE, "better": BASE + 0.05 + 0.001 * np.arange(5)}
    long = [outcome.model_copy(update={"seed": 5}) for outcome in outcomes({"single-long": BASE[:1]})]
    found = summarise(SETUP, [*outcomes(there), *long], ["single", "single-long", "better"], range(6))
    assert found.row("better").verdict == "not shown"
    assert "better has no seed in common with single-long, so it cannot be shown to help." in verdicts.notes(found)


def test_without_the_baseline_no_other_control_takes_its_place():
    there = {"single-long": BASE, "better": BASE + 0.05 + 0.001 * np.arange(5)}
    found = summarise(SETUP, outcomes(there), ["single", *there], range(5))
    assert found.row("better").verdict == "no verdict"
    assert found.verdict == "no verdict: single is missing"
