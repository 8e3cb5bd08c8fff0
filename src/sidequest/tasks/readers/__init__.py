"""Readers: a file in, a `Table` of Arrow or numpy columns out. One file per format.

A reader knows nothing of tasks. It refuses what it can't read with the file, the line and the rule; for text formats every row
keeps the line on which it begins, so that later checks can name it. May import: `errors`, `tasks.examples`.
"""

from sidequest.tasks.readers.dispatch import FORMATS, ReadSettings, guess_format, read_file
from sidequest.tasks.readers.huggingface import is_saved_dataset, read_hub, read_saved, saved_splits
from sidequest.tasks.readers.idx import read_idx, read_idx_array
from sidequest.tasks.readers.table import Table

__all__ = [
    "FORMATS",
    "ReadSettings",
    "Table",
    "guess_format",
    "is_saved_dataset",
    "read_file",
    "read_hub",
    "read_idx",
    "read_idx_array",
    "read_saved",
    "saved_splits",
]
