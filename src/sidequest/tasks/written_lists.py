"""Lists that a table holds as texts: `['joy', 'anger']` or `[3 14]`, as pandas writes columns of lists to csv."""

from __future__ import annotations

import ast
import functools
import re

LONGEST = 10_000  # characters; nothing longer is a list of labels


@functools.lru_cache(maxsize=100_000)
def written_list(text: str) -> tuple[str, ...] | None:
    """The values of a list written as JSON, as Python or as numpy prints it; None for any other text."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")) or len(text) > LONGEST:
        return None
    if re.fullmatch(r"\[\s*(-?\d+\.?\s*)*\]", text):  # numpy writes no commas, which would be a list of one in Python
        return tuple(number.rstrip(".") for number in text[1:-1].split())
    try:
        values = ast.literal_eval(re.sub(r"\bnull\b", "None", text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    plain = isinstance(values, list) and all(isinstance(value, str | int) for value in values)
    return tuple(str(value).strip() for value in values) if plain else None
