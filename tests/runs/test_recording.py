"""What a run records for its page."""

import json

from sidequest.records.runs import DataFacts, ExamplesRecord, FactsRecord
from sidequest.runs.recording import LONGEST_TEXT, record_run
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
