"""`sidequest report`, and the page that other commands write at their end."""

import sys

import pytest

from sidequest.cli import common, main
from tests.helpers.run_directories import hostile_suite, make_run

pytestmark = pytest.mark.usefixtures("few_digits")


@pytest.fixture
def call(monkeypatch, capsys):
    def called(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sidequest", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return called


def test_report_rebuilds_the_page(call, tmp_path):
    directory = make_run(tmp_path / "run")
    code, text, errors = call("report", directory, "--figures", "html")
    assert code == 0, errors
    assert (directory / "report.html").stat().st_size > 100_000
    assert str(directory / "report.html") in text
    assert (directory / "figures" / "tau.html").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["report", "NOWHERE"], "no such directory"),
        (["report", "EMPTY"], "nothing to report"),
        (["report", "EMPTY", "--figures", "pdf"], "unknown figure format 'pdf'"),
        (["select", "digits", "-m", "single", "-o", "NOWHERE", "--track", "tensorbord"], "Did you mean 'tensorboard'?"),
    ],
)
def test_bad_input_gives_one_message(call, tmp_path, arguments, says):
    (tmp_path / "empty").mkdir()
    places = {"NOWHERE": tmp_path / "nowhere", "EMPTY": tmp_path / "empty"}
    code, _, errors = call(*(places.get(argument, argument) for argument in arguments))
    assert code == 2
    assert says in errors
    assert "Traceback" not in errors


def test_help_has_an_example(call):
    code, text, _ = call("report", "--help")
    assert code == 0
    assert "Example:" in text


@pytest.mark.integration
def test_select_and_train_leave_a_page_with_their_commands(call, tmp_path):
    out = tmp_path / "run"
    code, text, errors = call("select", "digits", "-m", "heu-type", "-o", out, "--set", "train.epochs=1")
    assert code == 0, errors
    assert f"the page: {out / 'report.html'}" in text
    assert "not trained yet" in (out / "report.html").read_text(encoding="utf-8")
    code, text, errors = call("train", out)
    assert code == 0, errors
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "not trained yet" not in page
    assert f"sidequest select digits -m heu-type -o {out} --set train.epochs=1\nsidequest train {out}" in page
    assert page.count('src="data:image/png') >= 4  # rows of an image task are pictures


def test_a_run_never_fails_for_its_page(tmp_path, monkeypatch, capsys):
    directory = make_run(tmp_path / "run")

    def fail(directory):
        raise OSError("disk full")

    monkeypatch.setattr("sidequest.report.page.write_page", fail)
    common.finish_page(directory, hostile_suite(), "select")
    assert "no page: disk full. " in capsys.readouterr().err
