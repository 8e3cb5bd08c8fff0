"""The catalog: every entry reads the official layout, and MultiMNIST is what Sener & Koltun describe."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sidequest.errors import SidequestError
from sidequest.tasks import load_suite, load_task
from sidequest.tasks.benchmarks import ENTRIES
from sidequest.tasks.catalog import entry_name, resolve
from sidequest.tasks.metrics import check_metric
from sidequest.tasks.multimnist import pair_up
from sidequest.tasks.spec import TaskSpec
from sidequest.tasks.task import Form, Objective

Write = Callable[[str, "str | bytes"], Path]

# Rows of train and report in the shared files, and the first train row's text.
REAL = {
    "cola": ("glue/CoLA", 8551, 1043),
    "sst2": ("glue/SST-2", 67349, 872),
    "mrpc": ("glue/MRPC", 3668, 408),
    "stsb": ("glue/STS-B", 5749, 1500),
    "qqp": ("glue/QQP", 20000, 3497),
    "mnli": ("glue/MNLI", 10000, 9815),
    "qnli": ("glue/QNLI", 10475, 5463),
    "rte": ("glue/RTE", 2490, 277),
    "wnli": ("glue/WNLI", 635, 71),
    "cb": ("superglue/CB", 250, 56),
    "copa": ("superglue/COPA", 400, 100),
    "meld": ("meld", 9989, 1109),
    "conll2000": ("conll2000", 8936, 2012),
    "conll2003": ("conll2003", 14041, 3250),
    "ud": ("ud-english-ewt", 12544, 2001),
    "multimnist-top-left": ("mnist", 60000, 10000),
    "multimnist-bottom-right": ("mnist", 60000, 10000),
}


def test_the_table_of_real_data_covers_the_catalog() -> None:
    assert set(REAL) == set(ENTRIES)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_an_entry_reads_its_official_files(name: str, shared_data: Path) -> None:
    folder, train, report = REAL[name]
    task = load_task(name, {"catalog": name, "path": str(shared_data / folder)})
    assert len(task.train) + len(task.splits["select"]) == train
    assert len(task.splits["report"]) == report
    if task.objective in (Objective.CLASSIFICATION, Objective.TAGGING):
        target = task.train.target if isinstance(task.train.target, np.ndarray) else task.train.target.flatten()
        assert len(np.unique(np.asarray(target))) >= len(task.labels) - 1  # CoNLL-2000's train lacks I-LST
    for column in task.train.columns.values():
        assert len(column) == len(task.train)


def test_rows_of_real_benchmarks_mean_what_they_should(shared_data: Path) -> None:
    def first(name: str) -> tuple[dict, object]:
        task = load_task(name, {"catalog": name, "path": str(shared_data / REAL[name][0])})
        rows = task.splits["report"]
        target = rows.target[0].as_py() if task.objective is Objective.TAGGING else rows.target[0]
        named = (
            target
            if not task.labels
            else task.labels[target]
            if np.ndim(target) == 0
            else [task.labels[t] for t in target]
        )
        return {key: column[0].as_py() for key, column in rows.columns.items()}, named

    assert first("mrpc")[1] == "equivalent"
    assert first("mrpc")[0]["text_b"].startswith('" The foodservice pie business')
    assert first("cola") == ({"text": "The sailors rode the breeze clear of the rocks."}, "acceptable")
    assert first("stsb")[1] == 5.0
    assert first("wnli")[1] == "not_entailment"
    copa = {"text": "The man turned on the faucet. What was the effect?"}
    copa["choices"] = ["The toilet filled with water.", "Water flowed from the spout."]
    assert first("copa") == (copa, "1")
    assert first("conll2000")[1][:4] == ["B-NP", "I-NP", "I-NP", "B-NP"]
    assert "B-ORG" in first("conll2003")[1]  # the file says I-ORG
    assert first("ud")[0]["tokens"][:3] == ["From", "the", "AP"]


@pytest.mark.integration
def test_a_suite_of_three_benchmarks_loads_in_three_seconds(shared_data: Path, write: Write) -> None:
    import time

    tasks = {name: {"catalog": name, "path": str(shared_data / REAL[name][0])} for name in ("rte", "mrpc", "sst2")}
    path = write("suite.yaml", f"primary: rte\ntasks: {tasks}\n")
    start = time.process_time()
    load_suite(path)
    assert time.process_time() - start < 3


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_entries_are_consistent(name: str) -> None:
    entry = ENTRIES[name]
    labels = tuple(entry.labels.values()) if isinstance(entry.labels, dict) else entry.labels or ()
    for metric in entry.metrics:
        check_metric(metric, entry.objective, labels)
    if entry.hub is not None:
        spec = resolve(TaskSpec(catalog=name, limit=10, metric="accuracy"), Path())
        assert spec.faults() == []
        assert spec.hub == entry.hub["hub"]
        assert (spec.limit, spec.metric) == (10, ("accuracy",))
        saved = resolve(TaskSpec(catalog=name, saved="dir"), Path())
        assert (saved.hub, saved.saved) == (None, "dir")
        assert saved.faults() == []


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("RTE", "rte"),
        ("SST-2", "sst2"),
        ("sst-2", "sst2"),
        ("STS-B", "stsb"),
        ("CoNLL 2003", "conll2003"),
        ("ner", "conll2003"),
        ("multimnist left", "multimnist-top-left"),
    ],
)
def test_aliases(name: str, entry: str) -> None:
    assert entry_name(name) == entry


def test_catalog_faults(write: Write) -> None:
    with pytest.raises(SidequestError, match=r"unknown catalog entry 'mrcp'\. Did you mean 'mrpc'"):
        load_task("t", {"catalog": "mrcp", "path": "."})
    directory = write("RTE/other.tsv", "x").parent
    with pytest.raises(SidequestError, match=r"the official layout has a file 'train\.tsv' here; found other\.tsv"):
        load_task("t", {"catalog": "rte", "path": str(directory)})
    with pytest.raises(SidequestError, match=r"meld.* say `path:`"):
        load_task("t", {"catalog": "meld"})
    with pytest.raises(SidequestError, match="MNIST's four idx files; missing: train-images"):
        load_task("t", {"catalog": "multimnist-top-left", "path": str(directory)})


def test_the_official_columns_of_mnli(write: Write) -> None:
    header = "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
    row = "0\t1\t1n\tfiction\t( a )\t( b )\t(ROOT a)\t(ROOT b)\t{a}\t{b}\t{label}\t{label}\n"
    rows = [
        row.format(a=f'say "{i}', b=f"b {i}", label=("entailment", "neutral", "contradiction")[i % 3])
        for i in range(30)
    ]
    path = write("MNLI/train.tsv", f"{header}\tsentence1\tsentence2\tlabel1\tgold_label\n{''.join(rows)}")
    write("MNLI/dev_matched.tsv", f"{header}\tsentence1\tsentence2\tlabel1\tgold_label\n{rows[0]}")
    task = load_task("m", {"catalog": "mnli", "path": str(path.parent)})
    assert task.splits["report"].columns["text"].to_pylist() == ['say "0']
    assert task.labels[int(task.splits["report"].target[0])] == "entailment"


def test_broken_rows_of_qqp_are_left_out_and_noted(write: Write) -> None:
    head = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    rows = "".join(f"{i}\t{i}\t{i}\tq{i}?\tr{i}?\t{i % 2}\n" for i in range(20))
    directory = write("QQP/train.tsv", head + rows + '20\t20\t20\tbroken "\n in two?\t0\n').parent
    write("QQP/dev.tsv", head + rows)
    task = load_task("q", {"catalog": "qqp", "path": str(directory)})
    assert len(task.train) + len(task.splits["select"]) == 20
    assert "train: 2 malformed rows left out" in task.notes


# ---- MultiMNIST ------------------------------------------------------------------------------------------------------------


def test_two_digits_stand_in_their_corners() -> None:
    digits = np.zeros((2, 28, 28), dtype=np.uint8)
    digits[0, 2:8, 2:8] = 200  # a block near the top left of its own image
    digits[1, 20:26, 20:26] = 100  # and one near the bottom right
    made = pair_up(digits, np.array([3, 5]), np.random.default_rng(0))
    partner = 1 - np.arange(2) if made["bottom-right"].tolist() == [5, 3] else np.arange(2)
    assert made["top-left"].tolist() == [3, 5]
    for i, image in enumerate(made["image"][:, 0]):
        canvas = np.zeros((36, 36))
        canvas[:28, :28] = digits[i]
        canvas[8:, 8:] = np.maximum(canvas[8:, 8:], digits[partner[i]])
        # Averaging over areas keeps the mean brightness; the reference resizes by brute force, 7 × 9 = 63 points a side.
        fine = canvas.repeat(7, axis=0).repeat(7, axis=1).reshape(28, 9, 28, 9).mean(axis=(1, 3))
        assert np.abs(image - fine).max() <= 0.5 + 1e-3


def write_mnist(write: Write, rows: int, test_rows: int) -> Path:
    rng = np.random.default_rng(0)
    for part, n in (("train", rows), ("t10k", test_rows)):
        images = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        labels = (np.arange(n) % 10).astype(np.uint8)
        write(f"mnist/{part}-images-idx3-ubyte", b"\0\0\x08\x03" + struct.pack(">3I", n, 28, 28) + images.tobytes())
        path = write(f"mnist/{part}-labels-idx1-ubyte", b"\0\0\x08\x01" + struct.pack(">I", n) + labels.tobytes())
    return path.parent


def test_multimnist_is_deterministic_cached_and_shared_by_its_tasks(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "cache"))
    spec = {"catalog": "multimnist-top-left", "path": str(write_mnist(write, 120, 30))}
    first = load_task("l", spec)
    assert {split: len(rows) for split, rows in first.splits.items()} == {"train": 100, "select": 20, "report": 30}
    assert (first.form, first.labels) == (Form.IMAGE, tuple("0123456789"))
    (cached,) = (tmp_path / "cache" / "multimnist").rglob("arrays.npz")
    assert load_task("l", spec).fingerprints == first.fingerprints
    cached.unlink()
    assert load_task("l", spec).fingerprints == first.fingerprints
    right = load_task("r", spec | {"catalog": "multimnist-bottom-right"})
    assert np.array_equal(right.train.columns["image"], first.train.columns["image"])
    assert sorted(right.train.target) == sorted(first.train.target)  # the same digits in another order
    assert not np.array_equal(right.train.target, first.train.target)
    assert load_task("l", spec, seed=1).fingerprints != first.fingerprints
