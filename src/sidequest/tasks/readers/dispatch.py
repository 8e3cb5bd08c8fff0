"""Which reader reads a file, and with which settings."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from sidequest.errors import DataError
from sidequest.settings import Settings
from sidequest.tasks.readers.conll import read_conll
from sidequest.tasks.readers.conllu import read_conllu
from sidequest.tasks.readers.delimited import read_delimited
from sidequest.tasks.readers.huggingface import is_saved_dataset, read_saved
from sidequest.tasks.readers.jsonl import read_jsonl
from sidequest.tasks.readers.parquet import read_parquet
from sidequest.tasks.readers.table import Table

FORMATS = ("csv", "tsv", "jsonl", "parquet", "conll", "conllu", "idx", "saved")
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".conll": "conll",
    ".iob": "conll",
    ".iob2": "conll",
    ".bio": "conll",
    ".conllu": "conllu",
}


class ReadSettings(Settings):
    """How a file is read; every field may be left out.

    format: guessed from the file's suffix (before `.gz`) if absent.
    quoting: csv and tsv: `standard` (a field may stand in double quotes, and then hold separators and line ends) or
        `none` (quotes are plain characters, as in GLUE).
    header: csv and tsv: true, false (columns are then named by position: 0, 1, …), or a list of names.
    bad_rows: csv and tsv: what to do with a row that has a wrong number of fields.
    """

    format: Literal["csv", "tsv", "jsonl", "parquet", "conll", "conllu", "idx", "saved"] | None = None
    encoding: str = "utf-8"
    quoting: Literal["standard", "none"] = "standard"
    delimiter: str | None = Field(default=None, min_length=1, max_length=1)
    header: bool | tuple[str, ...] = True
    bad_rows: Literal["refuse", "skip"] = "refuse"


def guess_format(path: Path) -> str | None:
    """The format that a name promises, or None."""
    if path.is_dir():
        if is_saved_dataset(path):
            return "saved"
        return "parquet" if next(path.glob("*.parquet"), None) else None
    name = path.name.removesuffix(".gz")
    if "idx" in name and name.endswith("-ubyte"):
        return "idx"
    return SUFFIXES.get(Path(name).suffix.lower())


def read_file(path: Path, settings: ReadSettings | None = None) -> Table:
    """The table in a file (images in idx files come in pairs: see `read_idx`)."""
    settings = settings or ReadSettings()
    if not path.exists():
        raise DataError("no such file", file=path)
    match settings.format or guess_format(path):
        case "csv" | "tsv" as format:
            return read_delimited(
                path,
                delimiter=settings.delimiter or ("," if format == "csv" else "\t"),
                quoting=settings.quoting == "standard",
                header=settings.header,
                encoding=settings.encoding,
                skip_bad_rows=settings.bad_rows == "skip",
            )
        case "jsonl":
            return read_jsonl(path, encoding=settings.encoding)
        case "parquet":
            return read_parquet(path)
        case "conll":
            return read_conll(path, encoding=settings.encoding)
        case "conllu":
            return read_conllu(path, encoding=settings.encoding)
        case "saved":
            return read_saved(path)
        case "idx":
            raise DataError(
                "idx images need a label file: `{image: FILE, label: FILE}` in place of a file name", file=path
            )
        case _:
            known = ", ".join(FORMATS)
            raise DataError(f"the name does not tell the format; say `format:` with one of {known}", file=path)
