"""Predictions in a file: as they were, small, and nothing executed when they are read."""

import numpy as np
import pytest

from sidequest.runs.predictions import read_predictions, write_predictions


def test_predictions_come_back_as_they_were(tmp_path):
    rng = np.random.default_rng(0)
    given = {
        "classes": rng.integers(-1, 7, 500),
        "values": rng.normal(size=500).astype(np.float32),
        "several": rng.random((500, 4)) < 0.5,
        "a/../name": [rng.integers(0, 300, length) for length in (3, 0, 5)],
        "none": [],
    }
    path = tmp_path / "predictions.npz"
    write_predictions(path, given)
    read = read_predictions(path)
    assert list(read) == list(given)
    for task in ("classes", "values", "several"):
        np.testing.assert_array_equal(read[task], given[task])
    assert read["values"].dtype == np.float32
    for row, expected in zip(read["a/../name"], given["a/../name"], strict=True):
        np.testing.assert_array_equal(row, expected)
    assert read["none"] == []
    first = path.read_bytes()
    write_predictions(path, given)
    assert path.read_bytes() == first
    write_predictions(path, {**given, "classes": given["classes"][::-1]})
    assert path.read_bytes() != first


def test_a_class_takes_a_byte_before_compression(tmp_path):
    write_predictions(tmp_path / "p.npz", {"a": np.random.default_rng(0).integers(0, 256, 10_000)})
    assert (tmp_path / "p.npz").stat().st_size < 11_000


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04K\x01."])
def test_a_damaged_file_is_a_value_error(tmp_path, content):
    (tmp_path / "p.npz").write_bytes(content)
    with pytest.raises(ValueError, match="not predictions"):
        read_predictions(tmp_path / "p.npz")
