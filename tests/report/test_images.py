"""Figures as files: drawn by a browser, or without one as far as that goes."""

import struct
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from sidequest.errors import SidequestError
from sidequest.report.browser import BrowserFailed, find_browser
from sidequest.report.gradts import tau_between_tasks
from sidequest.report.images import file_name, parse_formats, save_figures
from sidequest.report.policies import policy_over_time
from tests.helpers.run_directories import HOSTILE, evidences

FIGURES = {"tau": tau_between_tasks(evidences()["gradts-fg"]), "policy": policy_over_time(evidences()["exp3s"])}


@pytest.mark.integration
@pytest.mark.skipif(
    find_browser() is None, reason="no Chromium or Chrome on the PATH, and SIDEQUEST_BROWSER names none"
)
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


def test_without_a_browser_simple_figures_are_drawn_and_a_message_says_the_rest(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDEQUEST_BROWSER", "no-such-browser")
    assert find_browser() is None
    written, messages = save_figures(FIGURES, tmp_path, ["svg", "png"])
    assert [path.name for path in written] == ["policy.svg"]
    assert len(messages) == 1
    assert "no browser found" in messages[0]
    assert "SVG of 1 of 2 figures" in messages[0]


def test_a_program_that_is_no_browser_fails_with_its_name(tmp_path):
    from sidequest.report.browser import Browser

    with pytest.raises(BrowserFailed, match="true"), Browser("/bin/true", timeout=5):
        pass


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
