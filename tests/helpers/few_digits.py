"""The embedded digits with fewer rows: commands and snippets that say `digits` take seconds instead of half a minute.

The primary keeps its 100 rows, so lengths in batches and epochs are those of the whole suite; the candidates, *select* and
*report* are small, and so is the network. What is shown about the digits themselves is tested on the whole suite.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from sidequest.tasks import digits
from sidequest.tasks.suite import Suite

SMALL = {"kind": "convnet", "channels": [4, 8], "hidden": 16}
ROWS = {"parity": 200, "large": 150, "bottom-right": 150, "ink": 120}
WHOLE = digits.digits_suite


@functools.cache
def few_digits() -> Suite:
    suite = WHOLE(rows=ROWS, select_rows=60, report_rows=120)
    return replace(suite, defaults={**suite.defaults, "model": SMALL})


def instead_of_all(*arguments: Any, **named: Any) -> Suite:
    """`digits_suite`, where nobody asks for anything else than the usual suite."""
    return WHOLE(*arguments, **named) if arguments or named else few_digits()
