"""Figures as files: pictures by kaleido, and html without it."""

import struct
import sys
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from sidequest.errors import SidequestError
from sidequest.records.evidence import HeadSimilarity, PolicyOverTime
from sidequest.report.gradts import tau_between_tasks
from sidequest.report.images import file_name, parse_formats, save_figures
from sidequest.report.policies import policy_over_time
from tests.helpers.browser import has_browser
from tests.helpers.run_directories import HOSTILE, evidences

FIGURES = {
    "tau": tau_between_tasks(HeadSimilarity.of(evidences()["gradts-fg"])),
    "policy": policy_over_time(PolicyOverTime.of(evidences()["exp3s"])),
}


@pytest.mark.integration
@pytest.mark.skipif(not has_browser(), reason="no Chromium or Chrome on the PATH")
def test_a_browser_draws_heat_maps_too(tmp_path):
    written, messages = save_figures(FIGURES, tmp_path, ["svg", "png", "html"])
    assert messages == []
    assert {path.name for path in written} == {f"{n}.{s}" for n in FIGURES for s in ("svg", "png", "html")}
    for path in written:
        if path.suffix == ".svg":
            root = ElementTree.fromstring(path.read_bytes())
            assert any(HOSTILE in (text.text or "") for text in root.iter("{http://www.w3.org/2000/svg}text"))
        elif path.suffix == ".png":
            assert struct.unpack(">II", path.read_bytes()[16:24]) == (1600, 900)
    cells = (tmp_path / "tau.svg").read_text()
    assert cells.count("<image") == 1  # a heat map is a picture inside the SVG


@pytest.mark.parametrize("missing", ["kaleido", "browser"])
def test_without_an_engine_html_is_written_and_a_sentence_says_what_to_install(tmp_path, monkeypatch, missing):
    if missing == "kaleido":
        monkeypatch.setitem(sys.modules, "kaleido", None)
    else:
        pytest.importorskip("kaleido")
        monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "no-such-browser"))
    written, (message,) = save_figures(FIGURES, tmp_path, ["svg", "png"])
    assert {path.name for path in written} == {"tau.html", "policy.html"}
    assert "pip install 'sidequest[figures]'" in message
    assert "written as html" in message
    assert not list(tmp_path.glob("*.svg"))


def test_that_there_is_no_browser_is_said_in_few_words(tmp_path, monkeypatch):
    kaleido = pytest.importorskip("kaleido")

    class ChromeNotFoundError(RuntimeError):
        """As the browser's driver calls it."""

    def no_browser(*_, **__):
        raise ChromeNotFoundError("To install Chrome, use the CLI command `kaleido_get_chrome`, or from Python …")

    monkeypatch.setattr(kaleido, "write_fig_from_object_sync", no_browser)
    _, (message,) = save_figures({"a": go.Figure()}, tmp_path, ["svg"])
    assert "and Chrome or Chromium (none is on the PATH): figures are written as html" in message
    assert "kaleido_get_chrome" not in message


def test_interactive_figures_offer_no_upload(tmp_path):
    (path,), _ = save_figures({"one": go.Figure(go.Bar(x=["a"], y=[1]))}, tmp_path, ["html"])
    assert "sendChartToCloud" in path.read_text().partition("modeBarButtonsToRemove")[2][:60]


def test_formats_are_checked():
    assert parse_formats("svg, PNG,svg") == ["svg", "png"]
    with pytest.raises(SidequestError, match=r"unknown figure format 'pgn'. Did you mean 'png'\?"):
        parse_formats("pgn")
    with pytest.raises(SidequestError, match="separated by commas"):
        parse_formats(" , ")


@pytest.mark.parametrize("name", ["a/b", "../up", "..", HOSTILE, "α and β", "con:1"])
def test_file_names_stay_in_their_directory(tmp_path, name):
    path = tmp_path / f"{file_name(name)}.svg"
    assert path.parent == tmp_path
    assert path.resolve().parent == tmp_path.resolve()
    assert not set(path.name) & set('<>:"/\\|?*')
