"""The public names: listed, typed, instant to import; the example is typed too."""

import subprocess
import sys

import pytest

import sidequest
from tests.helpers import ROOT


def test_every_name_is_there_and_listed():
    for name in sidequest.__all__:
        assert getattr(sidequest, name) is not None
        assert name in dir(sidequest)
    with pytest.raises(AttributeError, match="loda_suite"):
        _ = sidequest.loda_suite


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, sidequest; assert not {'torch', 'pandas', 'pydantic', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


USES = """
import sidequest as sq
reveal_type(sq.compare)
reveal_type(sq.Suite(primary="reviews.csv").check())
reveal_type(sq.compare("suite.yaml", ["heu-size", sq.AutoSeM(trials=8)], model="pooled").best.train())
sq.loda_suite
sq.compare("suite.yaml", seeds="five")
"""


def test_a_type_checker_sees_the_names_and_a_misspelt_one(tmp_path):
    """As `make types`, whose results mypy has kept."""
    (tmp_path / "uses.py").write_text(USES)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(tmp_path / "uses.py")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert 'Revealed type is "def (suite:' in said
    assert "sidequest.api.results.ComparisonResult" in said
    assert "sidequest.tasks.check_report.CheckReport" in said
    assert 'Revealed type is "sidequest.api.models.Model"' in said
    assert 'Module has no attribute "loda_suite"' in said
    assert 'Argument "seeds" to "compare" has incompatible type "str"' in said
    assert said.count("error:") == 2


@pytest.mark.slow
def test_the_example_is_typed_strictly(tmp_path):
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nmypy_path = {ROOT / 'src'}\nfollow_imports = silent\n[mypy-pandas.*]\nignore_missing_imports = True\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(tmp_path / "mypy.ini")]
    ran = subprocess.run([*command, str(ROOT / "examples" / "reviews.py")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.slow
def test_the_example_runs_as_it_stands(files):
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "reviews.py")], cwd=files, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "Verdict:" in ran.stdout
    assert "probability_up" in ran.stdout
    assert (files / "report.html").stat().st_size > 100_000
    assert (files / "model" / "sidequest.json").is_file()
