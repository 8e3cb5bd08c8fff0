"""Figures as files for papers: interactive HTML, and SVG and PNG drawn by kaleido (extra `figures`) with an installed Chrome or
Chromium. Where they are missing, HTML is written instead and a sentence says why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import plotly.graph_objects as go

from sidequest.errors import SettingsError, unknown
from sidequest.report.embedding import escaped
from sidequest.report.style import CONFIG, FILE_TEMPLATE

FORMATS = ("svg", "png", "html")
WIDTH, HEIGHT = 800, 450


def parse_formats(text: str) -> list[str]:
    """`svg,png` → `["svg", "png"]`."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in FORMATS:
            raise unknown("figure format", name, FORMATS)
    if not names:
        raise SettingsError(f"--figures takes formats separated by commas: {', '.join(FORMATS)}")
    return list(dict.fromkeys(names))


class NoEngine(Exception):
    """Kaleido or the browser that it needs is missing, or does not start."""


def save_figures(
    figures: Mapping[str, go.Figure],
    directory: Path,
    formats: Iterable[str],
    *,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> tuple[list[Path], list[str]]:
    """Write each figure in each format into the directory; returns the files, and messages about what could not be done.

    width, height: of pictures; a figure with a height of its own keeps it.
    """
    wanted = list(formats)
    pictures = [form for form in wanted if form != "html"]
    directory.mkdir(parents=True, exist_ok=True)
    figures = {name: go.Figure(figure).update_layout(template=FILE_TEMPLATE) for name, figure in figures.items()}
    messages = []
    written: list[Path] = []
    if pictures and figures:
        try:
            written = _draw(figures, directory, pictures, width, height)
        except NoEngine as reason:
            messages.append(
                f"SVG and PNG need `pip install 'sidequest[figures]'` and Chrome or Chromium ({reason}): figures are written as "
                "html, whose camera button saves SVG"
            )
            wanted.append("html")
    if "html" in wanted:
        for name, figure in figures.items():
            written.append(directory / f"{file_name(name)}.html")
            figure.write_html(written[-1], include_plotlyjs="directory", config=CONFIG)
    return written, messages


def save(figure: go.Figure, stem: Path, *, width: int = WIDTH, height: int = HEIGHT) -> list[Path]:
    """Write `stem.html` (interactive, without network; plotly.js lies beside it) and, where they can be drawn, `stem.svg` and
    `stem.png`. Returns what was written."""
    return save_figures({stem.name: figure}, stem.parent, FORMATS, width=width, height=height)[0]


def file_name(name: str) -> str:
    """A name that is safe as a file's, on every system."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("._") or "figure"


def _draw(figures: Mapping[str, go.Figure], directory: Path, formats: list[str], width: int, height: int) -> list[Path]:
    try:
        import kaleido
    except ImportError:
        raise NoEngine("kaleido is not installed") from None
    jobs = []
    for name, figure in figures.items():
        plain = escaped(json.loads(figure.to_json()))
        for form in formats:
            size = {
                "width": width,
                "height": plain["layout"].get("height") or height,
                "scale": 2 if form == "png" else 1,
            }
            path = directory / f"{file_name(name)}.{form}"  # not with_suffix: a method's name may hold a dot
            jobs.append({"fig": plain, "path": path, "opts": {"format": form, **size}})
    offline = kaleido.PageGenerator(mathjax=False)  # by default it fetches MathJax from the network
    try:
        kaleido.write_fig_from_object_sync(jobs, kopts={"page_generator": offline}, cancel_on_error=True)
    except Exception as error:  # kaleido and the browser's driver have errors of many kinds
        if type(error).__name__ == "ChromeNotFoundError":  # its own text is advice about its own commands
            raise NoEngine("none is on the PATH") from None
        first = (str(error).strip().splitlines() or [""])[0]
        raise NoEngine(f"{type(error).__name__}: {first}") from None
    return [job["path"] for job in jobs]
