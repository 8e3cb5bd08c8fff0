"""What a run records for its page."""

import base64
import json
import struct
import zlib

import numpy as np

from sidequest.records.runs import DataFacts, ExamplesRecord, FactsRecord
from sidequest.runs.recording import LONGEST_TEXT, png_data_uri, record_run
from sidequest.tasks.check import check_suite
from tests.helpers.run_directories import HOSTILE, TASKS, hostile_suite, make_recipe


def test_facts_are_those_of_check_and_commands_add_up(tmp_path):
    make_recipe("single", {}).write(tmp_path / "recipe.json")
    suite = hostile_suite()
    record_run(tmp_path, suite, "select", "sidequest select x")
    record_run(tmp_path, suite, "train", "sidequest train y")
    record = FactsRecord.read(tmp_path)
    assert record.commands == {"select": "sidequest select x", "train": "sidequest train y"}
    assert record.data == DataFacts.model_validate(json.loads(json.dumps(check_suite(suite).to_json())))
    assert "repetition" in record.data.problems[0].message
    assert record.data.tasks[TASKS[0]].form == "text"  # what the page does not know is kept


def test_a_comparison_records_rows_of_the_first_seed_of_each_method(tmp_path):
    for seed in (0, 1):
        make_recipe("gradts-fg", {}, seed).write(tmp_path / "gradts-fg" / f"seed-{seed}" / "recipe.json")
    record_run(tmp_path, hostile_suite(), "compare", "")
    assert not (tmp_path / "gradts-fg" / "seed-1" / "examples.json").exists()
    tasks = ExamplesRecord.read(tmp_path / "gradts-fg" / "seed-0").tasks
    assert [task.name for task in tasks] == [TASKS[0], HOSTILE, "plain"]
    rows = tasks[1].groups[0].rows
    assert all(row.id % 2 == 0 for row in rows)  # the subset of the recipe
    assert all(len(row.texts["text"]) <= LONGEST_TEXT + 1 for row in rows)


def test_a_picture_is_a_png_of_its_pixels():
    image = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    data = base64.b64decode(png_data_uri(image).partition(",")[2])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (4, 3)
    start = data.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", data[start - 8 : start - 4])
    lines = zlib.decompress(data[start : start + length])
    pixels = np.frombuffer(lines, dtype=np.uint8).reshape(3, 5)
    assert (pixels[:, 0] == 0).all()
    np.testing.assert_array_equal(pixels[:, 1:].ravel(), np.round(np.arange(12) / 11 * 255))
