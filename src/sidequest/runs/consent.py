"""Code of the user's runs only by the user's word.

A suite file, a recipe, a run directory or a truth table may name a function that builds the model (`model.kind: custom`), and may
come from anybody. A file alone therefore runs nothing: the user names the function (`--set model.factory=…`, or `model=` in
Python), or says that the file may (`--allow-code`, or `allow_code=True`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sidequest.errors import SettingsError
from sidequest.model_settings import CustomSettings, ModelSettings


def check_consent(settings: ModelSettings, given: Mapping[str, Any], where: str, *, allow_code: bool) -> None:
    """Refuse settings that would run code which a file alone has named. given: what the user gave, who may name any."""
    if not isinstance(settings, CustomSettings) or settings.factory is None or allow_code:
        return
    if given.get("factory") != settings.factory:
        raise SettingsError(
            f"{where}: asks to run code, model.factory={settings.factory!r}, and files may come from anybody. If you trust it, "
            f"say so: --allow-code (allow_code=True in Python), or name it: --set model.factory={settings.factory}"
        )
