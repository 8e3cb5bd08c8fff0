"""Rows by the million: fingerprints, repeated rows and rankings of a parquet file that is never in memory as a whole.

What is held is one batch of rows (`BATCH`), the best rows of a ranking, and of repeated rows one part in `PARTS` of 24 bytes
per row; so ten million rows of short text take about as much memory as a hundred thousand. The results are those of the
functions for rows in memory (`Examples.fingerprint`, `overlap.repeats`, sorting all scores), which the tests compare them with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sidequest.errors import DataError
from sidequest.files import temporary_directory
from sidequest.tasks.overlap import PART_END, normalised

BATCH = 65_536
PARTS = 64

Scorer = Callable[[pa.RecordBatch], np.ndarray]  # rows → float [n], higher is more like the primary


def batches(path: Path, columns: Sequence[str], size: int = BATCH) -> Iterator[pa.RecordBatch]:
    """The file's rows in order, a batch at a time."""
    with pq.ParquetFile(path) as file:
        missing = [name for name in columns if name not in file.schema_arrow.names]
        if missing:
            raise DataError(f"no column {missing[0]!r}; it has {', '.join(file.schema_arrow.names)}", file=path)
        yield from file.iter_batches(size, columns=list(columns))


def fingerprint(path: Path, columns: Sequence[str], target: str | None = None) -> str:
    """`Examples.fingerprint` of the file's rows, whose ids are their numbers. Reads the file twice for each text.

    columns: texts, under their canonical names. target: a column of whole numbers or of numbers.
    """
    rows = pq.read_metadata(path).num_rows
    digest = hashlib.sha256()
    for name in sorted(columns):
        digest.update(name.encode())
        digest.update(b"string")
        for batch in batches(path, [name]):
            digest.update(np.asarray(pc.binary_length(batch.column(0)), dtype=np.int64).tobytes())
        for batch in batches(path, [name]):
            digest.update("".join(batch.column(0).to_pylist()).encode())
    if target is not None:
        digest.update(b"target")
        for number, batch in enumerate(batches(path, [target])):
            values = batch.column(0).to_numpy(zero_copy_only=False)
            values = values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)
            if number == 0:
                digest.update(f"{values.dtype}({rows},)".encode())
            digest.update(np.ascontiguousarray(values).tobytes())
    for start in range(0, rows, BATCH):
        digest.update(np.arange(start, min(rows, start + BATCH), dtype=np.int64).tobytes())
    return digest.hexdigest()


def repeated_rows(path: Path, columns: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of rows whose texts repeat an earlier row's, after normalising, and the first row that each repeats.

    Rows are told apart by 128 bits of a digest: of 10¹⁰ different ones the chance that any two are taken for equal is below
    10⁻¹⁸.
    """
    kind = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<i8")])
    with temporary_directory("rows") as place:
        files = [(place / f"{part}").open("wb") for part in range(PARTS)]
        first = 0
        for batch in batches(path, columns):
            keys = np.empty(len(batch), dtype=kind)
            found = b"".join(map(_key, _texts(batch, columns)))
            keys[["high", "low"]] = np.frombuffer(found, dtype=[("high", "<u8"), ("low", "<u8")])
            keys["row"] = np.arange(first, first + len(batch))
            first += len(batch)
            part = keys["high"] % PARTS
            for number, file in enumerate(files):
                file.write(keys[part == number].tobytes())
        repeated, of = [], []
        for number, file in enumerate(files):
            file.close()
            keys = np.fromfile(place / f"{number}", dtype=kind)
            keys = keys[np.lexsort((keys["row"], keys["low"], keys["high"]))]
            new = np.ones(len(keys), dtype=bool)
            new[1:] = (keys["high"][1:] != keys["high"][:-1]) | (keys["low"][1:] != keys["low"][:-1])
            leaders = keys["row"][np.flatnonzero(new)][np.cumsum(new) - 1]
            repeated.append(keys["row"][~new])
            of.append(leaders[~new])
    rows, firsts = np.concatenate(repeated), np.concatenate(of)
    order = np.argsort(rows, kind="stable")
    return rows[order], firsts[order]


def best_rows(path: Path, columns: Sequence[str], score: Scorer, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and scores of the `count` rows of highest score, best first; of equal ones the earlier row. NaN is never among
    them."""
    rows, scores = np.zeros(0, dtype=np.int64), np.zeros(0)
    first = 0
    for batch in batches(path, columns):
        batch_scores = np.asarray(score(batch), dtype=np.float64)
        if batch_scores.shape != (len(batch),):
            raise ValueError(f"a scorer gives one number per row: {len(batch)} rows, found {batch_scores.shape}")
        rows = np.concatenate([rows, np.arange(first, first + len(batch))])
        scores = np.concatenate([scores, batch_scores])
        first += len(batch)
        if len(rows) > 2 * count:  # now and then, and not for every batch
            kept = np.sort(_top(rows, scores)[:count])
            rows, scores = rows[kept], scores[kept]
    best = _top(rows, scores)[:count]
    return rows[best], scores[best]


def _top(rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Positions, the highest score first."""
    return np.lexsort((rows, -scores))[: len(scores) - int(np.isnan(scores).sum())]  # NaN comes last


def _texts(batch: pa.RecordBatch, columns: Sequence[str]) -> list[str]:
    parts: list[Any] = [normalised(batch.column(name)) for name in columns]
    return pc.binary_join_element_wise(*parts, PART_END).to_pylist()


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
