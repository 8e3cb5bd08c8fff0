"""Where the benchmark files of an experiment are."""

from __future__ import annotations

import os
from pathlib import Path

from sidequest.errors import SettingsError
from sidequest.reproduce import Options

# The official names of GLUE's directories. WNLI is not among them: the papers that use this list leave it out.
GLUE_FOLDERS = {
    "cola": "CoLA",
    "mnli": "MNLI",
    "mrpc": "MRPC",
    "qnli": "QNLI",
    "qqp": "QQP",
    "rte": "RTE",
    "sst2": "SST-2",
    "stsb": "STS-B",
}

BESIDE = Path(__file__).parents[4] / "shared" / "data"  # beside a checkout of the repository


def data_directory(options: Options, *parts: str) -> Path:
    """`--data`, or `SIDEQUEST_DATA`, or a directory beside the repository; `parts` lead to the experiment's own files."""
    named = options.data or os.environ.get("SIDEQUEST_DATA")
    root = Path(named) if named else BESIDE
    directory = root.joinpath(*parts)
    if not directory.is_dir():
        raise SettingsError(
            f"{directory}: no such directory; --data (or SIDEQUEST_DATA) names the one that holds {'/'.join(parts)}/"
        )
    return directory
