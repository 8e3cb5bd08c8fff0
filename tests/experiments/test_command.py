"""`python -m experiments`: the list, and one message for bad input."""

import pytest

from experiments import EXPERIMENTS
from experiments.__main__ import main


def test_without_a_name_it_lists_the_experiments(capsys):
    assert main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["polices"], "Did you mean 'policies'?"), (["policies", "--small"], "--data (or SIDEQUEST_DATA)")],
)
def test_bad_input_gives_one_message_and_code_2(monkeypatch, capsys, tmp_path, arguments, says):
    monkeypatch.delenv("SIDEQUEST_DATA", raising=False)
    assert main([*arguments, "-o", str(tmp_path / "out")]) == 2
    assert says in capsys.readouterr().err
