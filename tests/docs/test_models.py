"""Every Python block of docs/models.md runs, in order, in one directory."""

from __future__ import annotations

import re

from sidequest.model_settings import KIND_SETTINGS
from tests.helpers import ROOT

DOC = ROOT / "docs" / "models.md"


def test_the_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", DOC.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        if name := re.match(r"# (\w+\.py)\n", block):
            (tmp_path / name[1]).write_text(block)
        else:
            exec(compile(block, str(DOC), "exec"), {})
    assert "'probabilities'" in capsys.readouterr().out


def test_every_setting_is_described():
    text = DOC.read_text(encoding="utf-8")
    for settings in KIND_SETTINGS.values():
        assert not [name for name in settings.model_fields if f"`{name}`" not in text and f"`model.{name}`" not in text]
