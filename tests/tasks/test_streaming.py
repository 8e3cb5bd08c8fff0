"""What streams from parquet is what rows in memory give."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sidequest.errors import DataError
from sidequest.tasks import streaming
from sidequest.tasks.examples import Examples
from sidequest.tasks.overlap import content_codes, repeats


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "BATCH", 7)
    monkeypatch.setattr(streaming.batches, "__defaults__", (7,))
    rng = np.random.default_rng(0)
    texts = [
        f"Word {n}  and {'ä' * (n % 3)}" if n % 2 else f"word {n} AND {'ä' * (n % 3)}" for n in rng.integers(0, 40, 100)
    ]
    pairs = [f"b{n}" for n in rng.integers(0, 2, 100)]
    target = rng.integers(0, 5, 100)
    table = pa.table({"text": texts, "text_b": pairs, "label": target})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=13)
    columns = {"text": pa.array(texts), "text_b": pa.array(pairs)}
    return tmp_path / "rows.parquet", Examples(columns, target.astype(np.int64), np.arange(100))


def test_the_fingerprint_is_that_of_rows_in_memory(rows, tmp_path):
    path, examples = rows
    assert streaming.fingerprint(path, ["text", "text_b"], "label") == examples.fingerprint()
    assert streaming.fingerprint(path, ["text"], "label") != examples.fingerprint()
    without = Examples({"text": examples.columns["text"]}, None, examples.ids)
    assert streaming.fingerprint(path, ["text"]) == without.fingerprint()


@pytest.mark.parametrize("columns", [["text"], ["text", "text_b"]])
def test_repeated_rows_are_those_of_rows_in_memory(rows, columns):
    path, examples = rows
    part = Examples({name: examples.columns[name] for name in columns}, None, examples.ids)
    expected, of = repeats(content_codes({"all": part})["all"])
    found, first = streaming.repeated_rows(path, columns)
    assert found.tolist() == expected.tolist()
    assert first.tolist() == of.tolist()
    assert 0 < len(found) < 100


@pytest.mark.parametrize("count", [1, 9, 100, 1000])
def test_the_best_rows_are_those_of_all_scores(rows, count):
    path, examples = rows
    score = lambda batch: np.asarray(pc.utf8_length(batch.column("text"))) * 1.0  # noqa: E731
    all_scores = np.asarray(pc.utf8_length(examples.columns["text"])) * 1.0
    found, scores = streaming.best_rows(path, ["text"], score, count)
    expected = np.argsort(-all_scores, kind="stable")[:count]
    assert found.tolist() == expected.tolist()
    assert scores.tolist() == all_scores[expected].tolist()


def test_a_missing_column_is_named(rows):
    with pytest.raises(DataError, match="no column 'txt'; it has text, text_b, label"):
        streaming.fingerprint(rows[0], ["txt"])
