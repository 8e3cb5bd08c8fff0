"""The notebook of `examples/` runs in a real kernel, and its results show themselves there."""

import nbformat
import pytest
from nbclient import NotebookClient

from tests.helpers import ROOT

# Runs before the notebook's own cells: `digits` has few rows.
FEW = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import sidequest.tasks.digits
from tests.helpers.few_digits import instead_of_all
sidequest.tasks.digits.digits_suite = instead_of_all
"ready"
"""


@pytest.mark.integration
@pytest.mark.parametrize("rows", ["few", pytest.param("all", marks=pytest.mark.slow)])
def test_the_notebook_runs_and_shows_its_results(tmp_path, rows):
    notebook = nbformat.read(ROOT / "examples" / "digits.ipynb", as_version=4)
    nbformat.validate(notebook)
    if rows == "few":
        notebook.cells.insert(0, nbformat.v4.new_code_cell(FEW))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = {cell.id: cell.outputs[-1]["data"] for cell in notebook.cells if cell.cell_type == "code"}
    assert "best constant answer has accuracy" in shown["suite"]["text/plain"]
    assert "<td>heu-type</td>" in shown["compare"]["text/html"]
    assert "Verdict:" in shown["compare"]["text/plain"]
    assert "baseline" in shown["frame"]["text/html"]
    assert "probability_" in shown["train"]["text/html"]
    assert (tmp_path / "report.html").stat().st_size > 100_000
