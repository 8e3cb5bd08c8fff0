"""Figures as files for papers: SVG and PNG drawn by a browser with plotly itself, and interactive HTML.

Without a browser, SVG of the simple kinds of figure is drawn by `svg`; of the others a message says what is missing.
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

import plotly.graph_objects as go

from sidequest.errors import SettingsError, unknown
from sidequest.files import write_atomically
from sidequest.report.browser import Browser, BrowserFailed
from sidequest.report.embedding import escaped
from sidequest.report.style import CONFIG
from sidequest.report.svg import can_draw, to_svg

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


def save_figures(
    figures: Mapping[str, go.Figure], directory: Path, formats: Iterable[str]
) -> tuple[list[Path], list[str]]:
    """Write each figure in each format into the directory; returns the files, and messages about what could not be done."""
    wanted = list(formats)
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    stems = {name: directory / file_name(name) for name in figures}
    if "html" in wanted:
        for name, figure in figures.items():
            written.append(_with_suffix(stems[name], "html"))
            figure.write_html(written[-1], include_plotlyjs="directory", config=CONFIG)
    pictures = [form for form in wanted if form != "html"]
    if not pictures or not figures:
        return written, []
    try:
        with Browser() as browser:
            return [*written, *_drawn_by(browser, figures, stems, pictures)], []
    except BrowserFailed as error:
        simple = {name: figure for name, figure in figures.items() if can_draw(figure)} if "svg" in pictures else {}
        for name, figure in simple.items():
            written.append(_with_suffix(stems[name], "svg"))
            write_atomically(written[-1], to_svg(figure, width=WIDTH, height=HEIGHT).encode())
        return written, [
            f"{error}. Drawn without it: SVG of {len(simple)} of {len(figures)} figures. The page itself saves any figure as "
            f"SVG by its camera button."
        ]


def file_name(name: str) -> str:
    """A name that is safe as a file's, on every system."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("._") or "figure"


def _drawn_by(
    browser: Browser, figures: Mapping[str, go.Figure], stems: Mapping[str, Path], formats: list[str]
) -> list[Path]:
    from plotly.offline import get_plotlyjs

    written = []
    with tempfile.TemporaryDirectory(prefix="sidequest-figures-") as place:
        page = Path(place) / "draw.html"
        page.write_text('<!doctype html><meta charset="utf-8"><script src="plotly.js"></script>', encoding="utf-8")
        page.with_name("plotly.js").write_text(get_plotlyjs(), encoding="utf-8")
        browser.open(page, width=WIDTH, height=HEIGHT)
        for name, figure in figures.items():
            plain = escaped(json.loads(figure.to_json()))
            height = plain["layout"].get("height") or HEIGHT
            for form in formats:
                options = {"format": form, "width": WIDTH, "height": height, "scale": 2 if form == "png" else 1}
                uri = browser.evaluate(f"Plotly.toImage({json.dumps(plain)}, {json.dumps(options)})")
                written.append(_with_suffix(stems[name], form))
                write_atomically(written[-1], _content(uri))
    return written


def _content(uri: str) -> bytes:
    """The bytes of a data URI: SVG comes as quoted text, PNG as base64."""
    head, _, body = uri.partition(",")
    return base64.b64decode(body) if head.endswith(";base64") else unquote(body).encode()


def _with_suffix(stem: Path, form: str) -> Path:
    return stem.with_name(f"{stem.name}.{form}")  # not with_suffix: a method's name may hold a dot
