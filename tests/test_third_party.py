"""A method and a kind of model of a separately installed package, chosen on the command line."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from sidequest.recipe import Recipe
from tests.helpers import ROOT

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The directory that the package was installed into, by pip, from a copy of its source."""
    place = tmp_path_factory.mktemp("third-party")
    source = shutil.copytree(ROOT / "tests" / "assets" / "third_party", place / "source")
    shutil.copy(ROOT / "tests" / "helpers" / "toy_method.py", source / "src" / "largest_gain" / "method.py")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--target", place / "site", source], check=True)
    return place / "site"


@pytest.fixture
def sidequest(installed, tmp_path):
    """Run the command line in a process that has the package; what it printed."""
    paths = [str(installed), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]

    def call(*arguments):
        result = subprocess.run(
            [sys.executable, "-m", "sidequest", *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"},
            cwd=tmp_path,
            check=False,
        )
        return result.returncode, result.stdout, result.stderr

    return call


def test_its_method_is_listed_and_a_broken_one_is_named(sidequest):
    code, out, errors = sidequest("methods")
    assert code == 0, errors
    (line,) = (line for line in out.splitlines() if "largest-gain" in line and "│" in line)
    assert "train once with each candidate" in line
    assert "method 'broken' of largest-gain cannot be imported: ModuleNotFoundError" in out.replace("\n", " ")


@pytest.mark.slow
def test_its_method_chooses_for_its_model_and_the_model_predicts(sidequest, tmp_path):
    settings = ["--set", "model.width=5", "--set", "train.max_batches=4", "--set", "least_gain=0.2"]
    code, _, errors = sidequest("select", "digits", "-m", "largest-gain", "--model", "pixels", *settings, "-o", "run")
    assert code == 0, errors
    recipe = Recipe.read(tmp_path / "run" / "recipe.json")
    assert recipe.method == "largest-gain"
    assert recipe.provenance["method_settings"] == {"least_gain": 0.2}
    assert recipe.provenance["model"] == {"kind": "pixels", "width": 5}
    code, out, errors = sidequest("train", "run")
    assert code == 0, errors
    assert "report: accuracy" in out
    card = json.loads((tmp_path / "run" / "model" / "sidequest.json").read_text())
    assert card["model"] == {"kind": "pixels", "width": 5}
    check = "import sidequest.models as m, sys; print(type(m.load(sys.argv[1]).members[0].family).__name__)"
    loads = subprocess.run(
        [sys.executable, "-c", check, tmp_path / "run" / "model"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src")])},
        check=False,
    )
    assert "unknown model kind 'pixels'" in loads.stderr  # without the package: one message that names the kind


@pytest.mark.slow
def test_its_settings_are_checked_like_ours(sidequest):
    code, _, errors = sidequest(
        "select", "digits", "-m", "largest-gain", "--model", "pixels", "--set", "model.widht=5", "-o", "run"
    )
    assert code == 2
    assert "unknown setting 'widht'. Did you mean 'width'?" in errors
    code, _, errors = sidequest("select", "digits", "-m", "gradts-thres", "--model", "pixels", "-o", "run")
    assert code == 2
    assert "model.kind=pixels has no attention heads: set model.kind to hf or custom" in errors
    code, _, errors = sidequest("select", "digits", "-m", "largest-gane", "-o", "run")
    assert code == 2
    assert "Did you mean 'largest-gain'?" in errors
