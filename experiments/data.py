"""Where the benchmark files of an experiment are."""

from __future__ import annotations

import os
from pathlib import Path

from experiments import Options
from sidequest.errors import SettingsError

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


def data_directory(options: Options, *parts: str) -> Path:
    """`--data`, or `SIDEQUEST_DATA`; `parts` lead to the experiment's own files."""
    inside = "/".join(parts)
    named = options.data or os.environ.get("SIDEQUEST_DATA")
    if named is None:
        raise SettingsError(f"where is the data? --data (or SIDEQUEST_DATA) names the directory that holds {inside}/")
    directory = Path(named).joinpath(*parts)
    if not directory.is_dir():
        raise SettingsError(
            f"{directory}: no such directory; --data (or SIDEQUEST_DATA) names the one that holds {inside}/"
        )
    return directory
