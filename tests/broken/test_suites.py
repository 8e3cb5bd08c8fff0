"""Suite files that cannot be, and paths in them that lead nowhere or to something that is no file."""

from __future__ import annotations

import os

import pytest
import yaml

from tests.helpers.good_inputs import TEXT_SUITE, write_texts

TASK = "{objective: classification, train: reviews.csv, text: text, label: label}"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{here}: &{here} [{', '.join([f'*{before}'] * 10)}]\n" for before, here in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a0: &a0 {k: v}\n" + "".join(
    f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}], k{i}: v}}\n" for i in range(1, 9)
)

# name → (the whole file, what the message says)
FILES: dict[str, tuple[str | bytes, list[str]]] = {
    "nothing": ("", ["suite.yaml", "primary"]),
    "a list": ("[1, 2]", ["suite.yaml", "list"]),
    "a text": ("hello", ["suite.yaml", "str"]),
    "a number": ("42", ["suite.yaml", "int"]),
    "not YAML": ("primary: [", ["suite.yaml", "YAML"]),
    "tabs": ("primary:\n\t- a", ["suite.yaml", "YAML"]),
    "not UTF-8": (b"primary: caf\xe9", ["suite.yaml"]),
    "UTF-16": ("primary: a".encode("utf-16"), ["suite.yaml"]),
    "control characters": ("primary: \x01\x02", ["suite.yaml"]),
    "two documents": ("primary: a\n---\nprimary: b\n", ["suite.yaml"]),
    "a key twice": (f"primary: a\nprimary: b\ntasks: {{a: {TASK}}}", ["suite.yaml", "twice"]),
    "an object of Python": ("primary: !!python/object/apply:os.system [ls]", ["suite.yaml"]),
    "a name of Python": ("primary: !!python/name:os.system", ["suite.yaml"]),
    "a list as a key": ("? [a, b]\n: c\nprimary: a\n", ["suite.yaml", "key"]),
    "a mapping as a key": ("? {a: b}\n: c\nprimary: a\n", ["suite.yaml", "key"]),
    "an alias of nothing": ("primary: *nothing", ["suite.yaml"]),
    "an alias inside itself": (f"primary: a\ntasks: &t {{a: {TASK}, b: *t}}", ["suite.yaml", "alias"]),
    "a list inside itself": ("primary: &a [*a]\n", ["suite.yaml"]),
    "aliases that explode": (f"{BOMB}primary: a\n", ["suite.yaml", "alias"]),
    "merges that explode": (f"{MERGES}primary: a\n", ["suite.yaml"]),
    "a merge of a text": (f"<<: text\nprimary: a\ntasks: {{a: {TASK}}}", ["suite.yaml"]),
    "deep lists": ("a: " + "[" * 5000 + "]" * 5000, ["suite.yaml", "deep"]),
    "deep mappings": ("a: " + "{a: " * 5000 + "}" * 5000, ["suite.yaml", "deep"]),
    "an integer of 5,000 digits": (f"seed: {'9' * 5000}\nprimary: a\ntasks: {{a: {TASK}}}", ["suite.yaml"]),
    "a megabyte of values": ("primary: a\nseed: [" + "1," * 2**19 + "1]", ["suite.yaml", "bytes"]),
    "a day that is none": (f"suite: 2026-13-45\nprimary: a\ntasks: {{a: {TASK}}}", ["suite.yaml"]),
    "an integer in base 60": (f"primary: 1:99\ntasks: {{a: {TASK}}}", ["suite.yaml", "primary"]),
    "bytes": (f"suite: !!binary abc\nprimary: a\ntasks: {{a: {TASK}}}", ["suite.yaml"]),
    "a set": (f"suite: !!set {{a}}\nprimary: a\ntasks: {{a: {TASK}}}", ["suite.yaml", "suite"]),
    "half a character": (f'suite: "\\ud800"\nprimary: a\ntasks: {{a: {TASK}}}', ["suite.yaml", "character"]),
    "half a character as a task": (f'primary: "a\\ud800"\ntasks: {{"a\\ud800": {TASK}}}', ["suite.yaml"]),
    "no primary": (f"tasks: {{a: {TASK}}}", ["suite.yaml", "primary"]),
    "a primary that is no task": (f"primary: b\ntasks: {{a: {TASK}}}", ["suite.yaml", "'b'", "a"]),
    "no tasks": ("primary: a", ["suite.yaml", "tasks"]),
    "tasks that are empty": ("primary: a\ntasks: {}", ["suite.yaml", "tasks"]),
    "tasks that are a list": ("primary: a\ntasks: [a, b]", ["suite.yaml", "tasks"]),
    "a task that is a text": ("primary: a\ntasks: {a: hello}", ["suite.yaml", "tasks.a"]),
    "a task that is null": ("primary: a\ntasks: {a: }", ["suite.yaml", "tasks.a"]),
    "a task without rows": ("primary: a\ntasks: {a: {objective: classification}}", ["suite.yaml", "train"]),
    "an unknown field": (f"primary: a\nprimray: b\ntasks: {{a: {TASK}}}", ["primray", "primary"]),
    "a goal that is none": (f"primary: a\ngoal: win\ntasks: {{a: {TASK}}}", ["goal", "win"]),
    "a negative seed": (f"primary: a\nseed: -1\ntasks: {{a: {TASK}}}", ["seed", "-1"]),
    "a seed of words": (f"primary: a\nseed: one\ntasks: {{a: {TASK}}}", ["seed", "one"]),
    "a seed of 10^40": (f"primary: a\nseed: 1{'0' * 40}\ntasks: {{a: {TASK}}}", ["seed"]),
    "a seed of NaN": (f"primary: a\nseed: .nan\ntasks: {{a: {TASK}}}", ["seed"]),
    "a name that is empty": (f"suite: ''\nprimary: a\ntasks: {{a: {TASK}}}", ["suite"]),
    "a name that is a path": (f"suite: ../../x\nprimary: a\ntasks: {{a: {TASK}}}", ["suite", "../../x"]),
    "a name with a line end": (f'suite: "a\\nb"\nprimary: a\ntasks: {{a: {TASK}}}', ["suite"]),
    "a name of 10,000 signs": (f"suite: {'x' * 10_000}\nprimary: a\ntasks: {{a: {TASK}}}", ["suite"]),
    "a task with a slash": (f"primary: ../a\ntasks: {{../a: {TASK}}}", ["../a"]),
    "a task without a name": (f"primary: ''\ntasks: {{'': {TASK}}}", ["name"]),
    "a task named null": (f"primary: a\ntasks: {{a: {TASK}, null: {TASK}}}", ["suite.yaml", "tasks"]),
    "a task of 1,000 signs": (f"primary: {'x' * 1000}\ntasks: {{{'x' * 1000}: {TASK}}}", ["name"]),
    "drop_overlap of words": (f"primary: a\ndrop_overlap: maybe\ntasks: {{a: {TASK}}}", ["drop_overlap", "maybe"]),
    "a model that is a text": (f"primary: a\nmodel: hf\ntasks: {{a: {TASK}}}", ["model"]),
    "a kind that is none": (f"primary: a\nmodel: {{kind: hff}}\ntasks: {{a: {TASK}}}", ["kind", "hff", "hf"]),
    "a kind that is a list": (f"primary: a\nmodel: {{kind: [hf]}}\ntasks: {{a: {TASK}}}", ["kind"]),
    "a setting of another kind": (f"primary: a\nmodel: {{kind: hf, hidden: 3}}\ntasks: {{a: {TASK}}}", ["hidden"]),
    "infinite epochs": (f"primary: a\ntrain: {{epochs: .inf}}\ntasks: {{a: {TASK}}}", ["epochs", "inf"]),
    "epochs of NaN": (f"primary: a\ntrain: {{epochs: .nan}}\ntasks: {{a: {TASK}}}", ["epochs", "nan"]),
    "a batch of 10^18": (f"primary: a\ntrain: {{batch_size: 1{'0' * 18}}}\ntasks: {{a: {TASK}}}", ["batch_size"]),
    "an infinite rate": (f"primary: a\ntrain: {{learning_rate: .inf}}\ntasks: {{a: {TASK}}}", ["learning_rate"]),
    "loss scales of NaN": (f"primary: a\ntrain: {{loss_scale: {{a: .nan}}}}\ntasks: {{a: {TASK}}}", ["loss_scale"]),
    "a negative loss scale": (f"primary: a\ntrain: {{loss_scale: {{a: -1}}}}\ntasks: {{a: {TASK}}}", ["loss_scale"]),
    "a loss scale of no task": (
        f"primary: a\ntrain: {{loss_scale: {{b: 1}}}}\ntasks: {{a: {TASK}}}",
        ["loss_scale", "b"],
    ),
    "a variable in the name": (f"suite: ${{HOME}}\nprimary: a\ntasks: {{a: {TASK}}}", ["suite", "variable"]),
    "a variable that is not set": (
        "primary: a\ntasks: {a: {objective: classification, train: '${NOT_SET}/a.csv', text: a, label: b}}",
        ["NOT_SET", "not set"],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_broken_suite_file_is_refused(name, place, refused):
    write_texts(place)
    content, says = FILES[name]
    (place / "suite.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(["check", "suite.yaml"], says)


# name → (changes of the task `reviews`, what the message says)
FIELDS: dict[str, tuple[dict[str, object], list[str]]] = {
    "no objective": ({"objective": None}, ["objective"]),
    "an objective that is none": ({"objective": "clasification"}, ["objective", "clasification"]),
    "no text": ({"text": None}, ["text", "missing"]),
    "a text that is a list": ({"text": ["a"]}, ["text"]),
    "a label of yes": ({"labels": [True, False]}, ["labels", "quotes"]),
    "tokens of a text": ({"tokens": "text"}, ["tokens"]),
    "a limit of zero": ({"limit": 0}, ["limit", "0"]),
    "a limit of half": ({"limit": 4.5}, ["limit", "4.5"]),
    "a limit of 10^30": ({"limit": 10**30}, ["limit"]),
    "a negative select_limit": ({"select_limit": -1}, ["select_limit", "-1"]),
    "a metric that is none": ({"metric": "acuracy"}, ["acuracy", "accuracy"]),
    "a metric of numbers": ({"metric": "pearson"}, ["pearson"]),
    "no metrics": ({"metric": []}, ["metric"]),
    "a metric twice": ({"metric": ["accuracy", "accuracy"]}, ["metric", "accuracy"]),
    "class weights of zero": ({"class_weights": {"up": 0}}, ["class_weights", "0"]),
    "class weights of NaN": ({"class_weights": {"up": float("nan")}}, ["class_weights"]),
    "class weights of 1e300": ({"class_weights": {"up": 1e300}}, ["class_weights"]),
    "a weight for no class": ({"class_weights": {"upp": 2}}, ["upp", "up"]),
    "an unknown field": ({"txt": "a"}, ["txt", "text"]),
    "shuffle_labels of words": ({"shuffle_labels": "perhaps"}, ["shuffle_labels", "perhaps"]),
    "a catalog that is none": ({"catalog": "glue-sst9"}, ["glue-sst9"]),
    "a catalog without its directory": ({"catalog": "rte", "path": "nowhere"}, ["nowhere", "directory"]),
    "saved that is a file": ({"saved": "reviews.csv", "train": "train"}, ["reviews.csv", "save_to_disk"]),
    "saved that is nowhere": ({"saved": "nowhere", "train": "train"}, ["nowhere"]),
    "a split of numbers": ({"train": 3}, ["train", "3"]),
    "a split of nothing": ({"train": {}}, ["train"]),
    "a split of a file and images": ({"train": {"file": "a", "image": "b"}}, ["train"]),
    "an image without labels": ({"train": {"image": "b"}}, ["label"]),
    "a train split that is not there": ({"train": "nowhere.csv"}, ["nowhere.csv", "no such file"]),
    "a report split that is not there": ({"report": "nowhere.csv"}, ["nowhere.csv", "no such file"]),
    "a folder as a split": ({"train": "folder.csv"}, ["folder.csv"]),
    "a pipe as a split": ({"train": "pipe.csv"}, ["pipe.csv", "file"]),
    "a pipe of images": (
        {"train": {"image": "pipe.csv", "label": "pipe.csv"}, "text": None, "label": None},
        ["pipe.csv"],
    ),
    "a pipe of parquet": ({"train": "pipe.parquet"}, ["pipe.parquet", "file"]),
    "a device": ({"train": "/dev/zero", "format": "csv"}, ["/dev/zero", "file"]),
    "a link in a circle": ({"train": "circle.csv"}, ["circle.csv"]),
    "a link to nowhere": ({"train": "dangling.csv"}, ["dangling.csv"]),
    "a path below a file": ({"train": "reviews.csv/x.csv"}, ["reviews.csv"]),
    "a path of 5,000 signs": ({"train": "x" * 5000 + ".csv"}, ["x.csv"]),
    "a path with NUL": ({"train": "a\0b.csv"}, ["b.csv"]),
    "nobody's home": ({"train": "~nosuchuser/a.csv"}, ["~nosuchuser"]),
    "nobody's home, saved": ({"saved": "~nosuchuser/a", "train": "train"}, ["~nosuchuser"]),
    "nobody's home, a catalog": ({"catalog": "rte", "path": "~nosuchuser"}, ["~nosuchuser"]),
    "an empty path": ({"train": ""}, ["train"]),
    "a path of a dot": ({"train": "."}, ["parquet"]),
    "a file that may not be read": ({"train": "locked.csv"}, ["locked.csv"]),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_broken_task_is_refused(name, place, refused):
    changes, says = FIELDS[name]
    task = {**TEXT_SUITE["tasks"]["reviews"], **changes}
    tasks = {"reviews": {key: value for key, value in task.items() if value is not None}}
    write_texts(place, {"tasks": tasks})
    (place / "folder.csv").mkdir()
    os.mkfifo(place / "pipe.csv")
    os.mkfifo(place / "pipe.parquet")
    (place / "circle.csv").symlink_to("circle.csv")
    (place / "dangling.csv").symlink_to("nowhere.csv")
    (place / "locked.csv").write_text("text,label\n")
    (place / "locked.csv").chmod(0)
    refused(["check", "suite.yaml"], says)
    (place / "locked.csv").chmod(0o600)


# The suite itself is not where it should be
PLACES: dict[str, tuple[str, list[str]]] = {
    "nowhere": ("nowhere.yaml", ["nowhere.yaml", "no such"]),
    "a name that is none": ("digit", ["digit", "digits"]),
    "a folder": ("folder", ["folder"]),
    "a pipe": ("pipe.yaml", ["pipe.yaml"]),
    "below a file": ("suite.yaml/x.yaml", ["suite.yaml/x.yaml"]),
    "5,000 signs": ("x" * 5000 + ".yaml", ["x.yaml"]),
    "nobody's home": ("~nosuchuser/suite.yaml", ["~nosuchuser"]),
    "a circle": ("circle.yaml", ["circle.yaml"]),
    "empty": ("", ["suite"]),
    "a device": ("/dev/zero", ["/dev/zero"]),
    "a data file": ("reviews.csv", ["reviews.csv"]),
    "half a character": ("\udcff.yaml", ["yaml"]),
}


@pytest.mark.parametrize("command", ["check", "select", "compare", "oracle", "tune"])
@pytest.mark.parametrize("name", PLACES)
def test_a_suite_that_is_not_there_is_refused(name, command, place, refused):
    write_texts(place)
    (place / "folder").mkdir()
    os.mkfifo(place / "pipe.yaml")
    (place / "circle.yaml").symlink_to("circle.yaml")
    where, says = PLACES[name]
    more = {"select": ["-m", "single", "-o", "out"]}.get(command, [] if command == "check" else ["-o", "out"])
    refused([command, where, *more], says)


def test_a_large_suite_file_is_read_soon(place):
    """What must not be refused: many tasks. It ends soon for the same reason that bombs do."""
    from tests.helpers.command_line import run_command

    write_texts(place)
    tasks = {f"t{i}": TEXT_SUITE["tasks"]["reviews"] for i in range(100)}
    (place / "suite.yaml").write_text(yaml.safe_dump({"primary": "t0", "tasks": tasks}))
    assert run_command("check", "suite.yaml", seconds=60).code == 0
