"""Which reader reads a file, and with which settings."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from sidequest.errors import DataError
from sidequest.paths import what_is_at
from sidequest.settings import Settings
from sidequest.tasks.readers.conll import parse_conll
from sidequest.tasks.readers.conllu import parse_conllu
from sidequest.tasks.readers.delimited import rows_to_table, split_rows
from sidequest.tasks.readers.fasttext import parse_fasttext
from sidequest.tasks.readers.huggingface import is_saved_dataset, read_saved
from sidequest.tasks.readers.jsonl import parse_json
from sidequest.tasks.readers.parquet import read_parquet
from sidequest.tasks.readers.table import Table
from sidequest.tasks.readers.text import read_text

FORMATS = ("csv", "tsv", "jsonl", "parquet", "conll", "conllu", "fasttext", "idx", "saved")
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
    ".ft": "fasttext",
}
DELIMITERS = {"csv": ",", "tsv": "\t"}


class ReadSettings(Settings):
    """How a file is read; every field may be left out.

    format: guessed from the file's suffix (before `.gz`) if absent.
    quoting: csv and tsv: `standard` (a field may stand in double quotes, and then hold separators and line ends) or
        `none` (quotes are plain characters, as in GLUE).
    header: csv and tsv: true, false (columns are then named by position: 0, 1, …), or a list of names.
    skip_rows: csv and tsv: how many lines stand before the header (or before the first row) and are not part of the table.
    bad_rows: csv and tsv: what to do with a row that has a wrong number of fields.
    """

    format: Literal["csv", "tsv", "jsonl", "parquet", "conll", "conllu", "fasttext", "idx", "saved"] | None = None
    encoding: str = "utf-8"
    quoting: Literal["standard", "none"] = "standard"
    delimiter: str | None = Field(default=None, min_length=1, max_length=1)
    header: bool | tuple[str, ...] = True
    skip_rows: int = Field(default=0, ge=0, le=10**9)
    bad_rows: Literal["refuse", "skip"] = "refuse"

    @field_validator("delimiter")
    @classmethod
    def _separates_fields(cls, value: str | None) -> str | None:
        if value is not None and value in '\r\n"\0':
            raise ValueError("a delimiter stands between fields: not a line end, a quote or nothing")
        return value

    @field_validator("header")
    @classmethod
    def _names_columns(cls, value: bool | tuple[str, ...]) -> bool | tuple[str, ...]:
        if not isinstance(value, bool) and (not value or len({*value}) < len(value)):
            raise ValueError("true, false, or a list of different names")
        return value


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
    if (found := what_is_at(path)) in ("nothing", "other"):
        raise DataError("no such file" if found == "nothing" else "a pipe or a device, not a file", file=path)
    match settings.format or guess_format(path):
        case "parquet":
            return read_parquet(path)
        case "saved":
            return read_saved(path)
        case "idx":
            raise DataError(
                "idx images need a label file: `{image: FILE, label: FILE}` in place of a file name", file=path
            )
        case None:
            known = ", ".join(FORMATS)
            raise DataError(f"the name does not tell the format; say `format:` with one of {known}", file=path)
        case format:
            return parse_text(read_text(path, settings.encoding), path, format, settings)


def parse_text(text: str, path: Path, format: str, settings: ReadSettings) -> Table:
    """The table in the text of a file."""
    if format == "jsonl":
        return parse_json(text, path)
    if format == "conll":
        return parse_conll(text, path)
    if format == "conllu":
        return parse_conllu(text, path)
    if format == "fasttext":
        return parse_fasttext(text, path)
    delimiter, quoting = settings.delimiter or DELIMITERS[format], settings.quoting == "standard"
    return rows_to_table(
        split_rows(text, path, delimiter=delimiter, quoting=quoting, skip_rows=settings.skip_rows),
        path,
        header=settings.header,
        delimiter=delimiter,
        quoting=quoting,
        skip_bad_rows=settings.bad_rows == "skip",
    )
