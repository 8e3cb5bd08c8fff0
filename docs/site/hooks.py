"""Pages that are made from the code when the site is built: commands, settings, and the index of the log.

`on_files` adds them; nothing of them is in the repository, so none can be out of date.
"""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from mkdocs.structure.files import File, Files

LOG = Path(__file__).parents[1] / "log"
PLAIN = ("Settings", "Checked")  # bases whose docstrings say nothing about a setting

meanings = runpy.run_path(str(Path(__file__).with_name("fields.py")))["meanings"]


def on_files(files: Files, config: Any) -> Files:
    pages = {"reference/commands.md": commands(), "reference/settings.md": settings(), "log/index.md": log_index()}
    for place, text in pages.items():
        files.append(File.generated(config, place, content=text))
    for path in sorted(LOG.glob("*.md")):
        entry = files.get_file_from_path(f"log/{path.name}")
        if entry is not None:
            entry.inclusion = entry.inclusion.NOT_IN_NAV  # they are reached through the index
    return files


def commands() -> str:
    """Every command with its arguments, options and help, as the command line prints them."""
    import typer.main

    from sidequest.cli import app

    group: Any = typer.main.get_command(app)
    parts = ["# Commands\n", "`sidequest COMMAND --help` prints the same. Made from the code.\n"]
    for name, command in group.commands.items():
        parts.append(f"## sidequest {name}\n\n```text\n{(command.help or '').strip()}\n```\n")
        rows = [row for parameter in command.params if (row := _parameter(parameter))]
        if rows:
            parts.append("| argument or option | default | meaning |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _parameter(parameter: Any) -> str:
    if getattr(parameter, "hidden", False):
        return ""
    names = ", ".join(f"`{name}`" for name in parameter.opts)
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    default = parameter.default
    shown = "" if default is None or default in ((), [], False, "") or callable(default) else f"`{_short(default)}`"
    return f"| {names} | {shown} | {_cell(getattr(parameter, 'help', None) or '')} |"


def settings() -> str:
    """Every class of settings: training, kinds of models, methods."""
    from sidequest.methods.registry import METHODS, get_method
    from sidequest.model_settings import KIND_SETTINGS
    from sidequest.settings import TrainSettings

    parts = [
        "# Settings\n",
        "Given by `--set NAME=VALUE`, in a suite file, or as keyword arguments in Python. Made from the code.\n",
        "## Training (`train.NAME`)\n",
        _settings_of(TrainSettings),
        "A default that a kind of model gives for the number of rows goes before these: see [Models](../models.md).\n",
    ]
    for kind, cls in KIND_SETTINGS.items():
        parts += [f"## Model `{kind}` (`model.NAME`)\n", _settings_of(cls)]
    for name in METHODS:
        method = get_method(name)
        if method.Settings.model_fields:
            parts += [f"## Method `{name}`\n", _settings_of(method.Settings)]
    return "\n".join(parts)


def _settings_of(cls: Any) -> str:
    """What the docstrings of a class of settings and of those it is made of say of each setting."""
    bases = [base for base in cls.__mro__ if base.__module__.startswith("sidequest") and base.__name__ not in PLAIN]
    texts = [inspect.cleandoc(vars(base).get("__doc__") or "") for base in bases]
    prose, _ = meanings(texts[:1], cls.model_fields)
    _, meaning = meanings(texts, cls.model_fields)
    items = []
    for name, field in cls.model_fields.items():
        default = "" if field.is_required() else f", default `{_short(field.get_default(call_default_factory=True))}`"
        items.append(f"- **`{name}`** (`{_type(field.annotation)}`{default}): {meaning.get(name, '')}")
    return "\n\n".join([*prose, "\n".join(items)]) + "\n"


def _type(annotation: Any) -> str:
    """A type as a reader would say it: the values of a choice, without the bounds that are checked."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is type(None):
        return "none"
    if origin is Annotated:
        return _type(inner[0])
    if origin in (Union, UnionType):
        return " or ".join(map(_type, inner))
    if origin is Literal:
        return " or ".join(map(str, inner))
    if origin is tuple and Ellipsis in inner:
        return f"list of {_type(inner[0])}"
    if origin is tuple:
        return f"({', '.join(map(_type, inner))})"
    if origin is dict:
        return f"{_type(inner[1])} by name"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _short(value: Any) -> str:
    text = str(value)
    return _cell(text if len(text) <= 80 else f"{text[:77]}…")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def log_index() -> str:
    """Entries of the log by date, newest first, with what each says; the box filters them."""
    rows = []
    for path in sorted(LOG.glob("*.md"), reverse=True):
        if path.name == "index.md":
            continue
        about = front_matter(path)
        cells = [str(about["date"]), f"[{about['title']}]({path.name})", str(about["verdict"])]
        cells += [str(about.get("seeds", "")), str(about.get("minutes", ""))]
        rows.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    head = "| date | experiment | verdict | seeds | minutes |\n| --- | --- | --- | --- | --- |\n"
    return (
        "# Log of experiments\n\nOne file per experiment, negative ones included. Type to filter:\n\n"
        '<input id="filter" type="search" style="width:100%;padding:.4em .6em;border:1px solid #999;border-radius:.3em"'
        ' placeholder="autosem, negative, 2026-11…" aria-label="filter entries">\n\n'
        + head
        + "\n".join(rows)
        + "\n\n<script>\nconst box = document.getElementById('filter');\n"
        "box.addEventListener('input', () => document.querySelectorAll('article tbody tr').forEach(row => {\n"
        "  row.hidden = !row.textContent.toLowerCase().includes(box.value.toLowerCase());\n}));\n</script>\n"
    )


def front_matter(path: Path) -> dict[str, Any]:
    """The block between the first two lines of three hyphens."""
    found = re.match(r"---\n(.*?)\n---\n", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    about = yaml.safe_load(found.group(1)) if found else None
    if not isinstance(about, dict) or not {"date", "title", "verdict"} <= about.keys():
        raise SystemExit(f"{path}: an entry of the log begins with date, title and verdict between lines of ---")
    return about
