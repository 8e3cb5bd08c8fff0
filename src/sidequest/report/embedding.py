"""Putting figures and data into a page safely: nothing that a dataset, a task name or a label holds becomes markup.

Plotly reads a little HTML in the texts of a figure (`<b>`, `<a href>`), and a `</script>` inside a script element would end it.
So texts of figures are escaped before they reach plotly, and JSON has no `<` left when it reaches the page.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import json
import re
from typing import Any

import plotly.graph_objects as go

# What our own figures use; anything else in a template comes from data.
_OWN_TAGS = re.compile(r"&lt;(/?extra|br)&gt;")
_TEMPLATES = ("hovertemplate", "texttemplate")


def figure_json(figure: go.Figure) -> dict[str, Any]:
    """Data and layout for the page: without title (the page writes it) and template (the page has its own, light and dark)."""
    plain = json.loads(figure.to_json())
    layout = {key: value for key, value in plain["layout"].items() if key not in ("title", "template")}
    return {"data": escaped(plain["data"]), "layout": escaped(layout)}


def escaped(value: Any, key: str = "") -> Any:
    """Plain data with `<`, `>` and `&` of all its texts as entities, which plotly shows as the characters they were."""
    if isinstance(value, str):
        text = html.escape(value, quote=False)
        return _OWN_TAGS.sub(r"<\1>", text) if key in _TEMPLATES else text
    if isinstance(value, list):
        return [escaped(item, key) for item in value]
    if isinstance(value, dict):
        # Arrays of numbers come as base64 with their type: nothing to escape, and long.
        return value if "bdata" in value else {name: escaped(item, name) for name, item in value.items()}
    return value


def script_json(value: Any) -> str:
    """JSON for the inside of a script element: every `<` is written as an escape that JSON undoes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@functools.lru_cache(maxsize=1)
def packed_plotly() -> str:
    """plotly.js, compressed, as base64: 2 MB instead of 4.8. Browsers since 2023 unpack it themselves."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), compresslevel=9, mtime=0)).decode("ascii")


def script_digest(script: str) -> str:
    """How a content security policy names a script that may run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


@functools.lru_cache(maxsize=1)
def plotly_digest() -> str:
    """Of plotly.js as the page unpacks and adds it."""
    from plotly.offline import get_plotlyjs

    return script_digest(get_plotlyjs())
