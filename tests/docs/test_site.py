"""The snippets of the site's pages run, and every entry of the log says what it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.helpers import ROOT

PAGES = ["start.md", "how-to/own-method.md", "how-to/notebook.md", "reference/recipe.md"]
ENTRIES = sorted((ROOT / "docs" / "log").glob("*.md"))


@pytest.mark.integration
@pytest.mark.parametrize("page", PAGES)
def test_python_snippets_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        if name := re.match(r"# (\w+)\.py\n", block):
            (tmp_path / f"{name.group(1)}.py").write_text(block, encoding="utf-8")
            sys.modules.pop(name.group(1), None)
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.stem)
def test_an_entry_of_the_log_begins_with_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    about = yaml.safe_load(head)
    assert {"date", "title", "verdict"} <= about.keys()
    assert path.name.startswith(f"{about['date']}-")
    assert body.lstrip().startswith("# ")
