"""Every snippet of docs/data.md runs, and its tables name what there is."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from sidequest.tasks import check_suite, load_suite
from sidequest.tasks.benchmarks import ENTRIES
from sidequest.tasks.metrics import METRICS
from sidequest.tasks.readers import FORMATS
from sidequest.tasks.spec import SuiteSpec, TaskSpec
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The files that the page's examples speak of."""
    for name in ("reviews.csv", "reviews_test.csv"):
        rows = [f'"{name}, text\nnumber {i}",{("bad", "good")[i % 2]}' for i in range(40)]
        (tmp_path / name).write_text("\r\n".join(["body,stars", *rows]), newline="")
    pairs = [f'a "{i}\tb {i}\t{i / 8}' for i in range(40)]
    (tmp_path / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *pairs]))
    (tmp_path / "news.conll").write_text("EU NNP I-ORG\nrejects VBZ O\n\nPeter NNP I-PER\n\n" * 20)
    row = {"premise": "It rained.", "question": "effect", "choice1": "It was wet.", "choice2": "It was dry."}
    causes = [json.dumps(row | {"premise": f"It rained {i} times.", "label": i % 2}) for i in range(20)]
    (tmp_path / "causes.jsonl").write_text("\n".join(causes))
    topics = [{"body": f"text {i}", "topics": ["art", "war"][i % 2 :]} for i in range(40)]
    (tmp_path / "topics.jsonl").write_text("\n".join(map(json.dumps, topics)))
    (tmp_path / "tags.csv").write_text(
        "\n".join(["body,tags", *(f"text {i},{('a;b', 'b')[i % 2]}" for i in range(40))])
    )
    emotions = [f"text {i},{('joy', 'joy', 'fear')[i % 3]}" for i in range(40)]
    (tmp_path / "emotions.csv").write_text("\n".join(["body,emotion", *emotions]))
    marks = [f"text {i},{i % 2},0,{i % 3 // 2}" for i in range(40)]
    (tmp_path / "comments.csv").write_text("\n".join(["comment,insult,threat,obscene", *marks]))
    (tmp_path / "export.txt").write_bytes("\r\n".join(f"café {i};{i % 2}" for i in range(40)).encode("cp1252"))
    return tmp_path


def tasks_of(text: str, home: Path) -> int:
    """How many tasks a snippet has, after it passed the check and was loaded."""
    path = home / "suite.yaml"
    path.write_text(text)
    assert check_suite(path).errors == ()
    return len(load_suite(path).tasks)


def test_suites_of_own_files_load_and_pass_the_check(home: Path) -> None:
    assert [tasks_of(text, home) for text in snippets("yaml") if "catalog:" not in text] == [4, 3, 1, 1]


def test_suites_of_the_catalog_load_and_pass_the_check(home: Path, shared_data: Path) -> None:
    (home / "data").symlink_to(shared_data)
    assert [tasks_of(text, home) for text in snippets("yaml") if "catalog:" in text] == [3]


def test_python_snippets_run() -> None:
    for code in snippets("python"):
        exec(compile(code, "docs/data.md", "exec"), {})


@pytest.mark.parametrize("model", [SuiteSpec, TaskSpec])
def test_every_field_is_explained(model: type) -> None:
    explained = set(re.findall(r"`([a-z_]+)`", "".join(line for line in PAGE.splitlines() if line.startswith("|"))))
    assert set(model.model_fields) <= explained  # type: ignore[attr-defined]


def test_tables_are_complete() -> None:
    for name, entry in ENTRIES.items():
        (row,) = re.findall(rf"^\| `{re.escape(name)}` \|.*$", PAGE, flags=re.MULTILINE)
        for part in (*entry.metrics, entry.kind, *entry.files.values(), (entry.hub or {}).get("hub", "")):
            assert part in row
    for metric in METRICS:
        assert f"`{metric}`" in PAGE
    for format in FORMATS:
        assert re.search(rf"^\| `{format}` \|", PAGE, flags=re.MULTILINE)


def test_an_idx_split_as_the_table_writes_it(home: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (20, 4, 4), dtype=np.uint8)
    (home / "i-ubyte").write_bytes(b"\0\0\x08\x03" + struct.pack(">3I", *images.shape) + images.tobytes())
    (home / "l-ubyte").write_bytes(b"\0\0\x08\x01" + struct.pack(">I", 20) + bytes(i % 2 for i in range(20)))
    text = "primary: d\ntasks: {d: {objective: classification, train: {image: i-ubyte, label: l-ubyte}}}\n"
    (home / "suite.yaml").write_text(text)
    assert load_suite(home / "suite.yaml")["d"].train.columns["image"].shape[1:] == (1, 4, 4)
