"""Words and their tags as two texts of a row, with spaces between: `EU rejects it` and `B-ORG O O`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from sidequest.tasks.readers import Table
from sidequest.tasks.targets import uses_iob


def written_tags(table: Table) -> tuple[str, str] | None:
    """The columns of the words and of their tags: in every row as many of one as of the other, and the tags mark spans."""
    texts = {
        name: pc.utf8_split_whitespace(pc.utf8_trim_whitespace(pc.fill_null(column, "")))
        for name, column in table.columns.items()
        if isinstance(column, pa.Array) and pa.types.is_string(column.type)
    }
    tags = next((name for name, words in texts.items() if _are_tags(words)), None)
    if tags is None:
        return None
    counts = pc.list_value_length(texts[tags])
    fitting = [name for name, words in texts.items() if name != tags and pc.list_value_length(words).equals(counts)]
    return (fitting[0], tags) if fitting else None


def _are_tags(words: pa.ListArray) -> bool:
    several = pc.mean(pc.list_value_length(words)).as_py() or 0
    return several > 1 and uses_iob(words)  # a label for the whole text is one word
