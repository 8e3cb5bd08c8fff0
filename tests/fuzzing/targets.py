"""What is fuzzed: each target breaks a sound input and gives it to what reads it."""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from sidequest.errors import SidequestError
from sidequest.files import read_json
from sidequest.methods.policies.log import read_log
from sidequest.models.saved import ModelCard, rowless_task
from sidequest.recipe import Recipe
from sidequest.records.base import Record
from sidequest.records.comparisons import Comparison, Outcome
from sidequest.records.runs import ExamplesRecord, FactsRecord, RunRecord, ScoresRecord, SelectionRecord
from sidequest.report.page import write_page
from sidequest.runs.sources import check_fits
from sidequest.runs.truth import TruthTable
from sidequest.runs.tuning import Tuning
from sidequest.settings import TrainSettings, parse, parse_assignments
from sidequest.tasks.check import check_suite
from sidequest.tasks.loading import load_suite
from sidequest.tasks.readers import ReadSettings, read_file, read_idx
from tests.fuzzing.mutators import VALUES, as_json, as_yaml, broken_bytes, broken_data
from tests.helpers.good_inputs import csv_text, text_rows
from tests.helpers.good_runs import Good

Target = Callable[[random.Random, Path], None]


class Silent(AssertionError):
    """Something broken was accepted as something else."""


def targets(good: Good) -> dict[str, tuple[Target, int]]:
    """By name: the target, and how many of a hundred cases are its."""
    return {
        "reader": (_readers(good), 30),
        "suite": (_suites(good), 20),
        "recipe": (_recipes(good), 15),
        "row ids": (_row_ids(good), 5),
        "card": (_cards(good), 10),
        "record": (_records(good), 14),
        "page": (_pages(good), 1),
        "setting": (_settings, 5),
    }


def _parquet(rows: list[dict[str, str]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def _readers(good: Good) -> Target:
    rows = text_rows(12)
    plain = csv_text(rows).encode()
    words = "".join(f"w{i}\tB-X\n" + ("\n" if i % 4 == 3 else "") for i in range(24)).encode()
    ten = "".join("\t".join([str(i + 1), *"abcdefghi"]) + "\n" for i in range(4)).encode()
    files = {
        "d.csv": plain,
        "d.tsv": plain.replace(b",", b"\t"),
        "d.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode(),
        "d.json": json.dumps(rows).encode(),
        "d.parquet": _parquet(rows),
        "d.conll": words,
        "d.conllu": ten + b"\n" + ten,
        "d.csv.gz": gzip.compress(plain, mtime=0),
    }
    images = good.images.parent
    names = sorted(files)

    def run(rng: random.Random, place: Path) -> None:
        name = rng.choice([*names, "idx"])
        if name == "idx":
            image, label = ((images / f"main-{part}").read_bytes() for part in ("images", "labels"))
            (place / "i").write_bytes(broken_bytes(image, rng) if rng.random() < 0.7 else image)
            (place / "l").write_bytes(broken_bytes(label, rng))
            read_idx(place / "i", place / "l")
            return
        (place / name).write_bytes(broken_bytes(files[name], rng))
        settings = {}
        if rng.random() < 0.3:
            settings = {rng.choice(sorted(ReadSettings.model_fields)): rng.choice(VALUES)}
        if rng.random() < 0.2:
            settings["encoding"] = rng.choice(("latin-1", "utf-16", "utf-7", "cp1252", "base64", "idna", "utf-32"))
        table = read_file(place / name, parse(ReadSettings, settings, "reading"))
        if not len(table) or any(len(column) != len(table) for column in table.columns.values()):
            raise Silent(f"a table of {len(table)} rows with columns of other lengths")

    return run


def _suites(good: Good) -> Target:
    sources = [good.texts, good.images]
    written = {source: yaml.safe_load(source.read_text()) for source in sources}

    def run(rng: random.Random, place: Path) -> None:
        source = rng.choice(sources)
        for path in source.parent.iterdir():
            if path.name != "suite.yaml":
                (place / path.name).symlink_to(path)
        changed = broken_data(written[source], rng)
        data = as_yaml(changed) if rng.random() < 0.6 else broken_bytes(source.read_bytes(), rng)
        (place / "suite.yaml").write_bytes(data)
        if rng.random() < 0.3:
            check_suite(str(place / "suite.yaml")).to_json()
        suite = load_suite(place / "suite.yaml")
        if suite.primary not in suite.tasks or not all(len(task.train) for task in suite.tasks.values()):
            raise Silent("a suite without its primary, or with a task without rows")

    return run


def _recipes(good: Good) -> Target:
    original = json.loads((good.run / "recipe.json").read_text())
    suite = load_suite(good.images)

    def run(rng: random.Random, place: Path) -> None:
        for path in good.run.glob("rows-*.npy"):
            shutil.copyfile(path, place / path.name)
        plain = (good.run / "recipe.json").read_bytes()
        data = as_json(broken_data(original, rng)) if rng.random() < 0.7 else broken_bytes(plain, rng)
        (place / "recipe.json").write_bytes(data)
        recipe = Recipe.read(place / "recipe.json")
        recipe.write(place / "again.json")
        if Recipe.read(place / "again.json").to_json() != recipe.to_json():
            raise Silent("a recipe that is another one when it is written and read again")
        check_fits(recipe, suite, place / "recipe.json")

    return run


def _row_ids(good: Good) -> Target:
    recipe = Recipe.read(good.run / "recipe.json")

    def run(rng: random.Random, place: Path) -> None:
        shutil.copyfile(good.run / "recipe.json", place / "recipe.json")
        for path in good.run.glob("rows-*.npy"):
            data = path.read_bytes()
            (place / path.name).write_bytes(broken_bytes(data, rng) if rng.random() < 0.8 else data)
        if Recipe.read(place / "recipe.json") != recipe:
            raise Silent("other row ids than the recipe's")

    return run


def _cards(good: Good) -> Target:
    original = ModelCard.read_from(good.model)
    plain = original.to_json()

    def run(rng: random.Random, place: Path) -> None:
        if rng.random() < 0.3:  # sealed: whatever is read is what was written
            (place / "sidequest.json").write_bytes(broken_bytes((good.model / "sidequest.json").read_bytes(), rng))
            seal = b'"sha256"' in (place / "sidequest.json").read_bytes()
            if (found := ModelCard.read_from(place)) != original and seal:
                raise Silent("a sealed card with another content")
        else:
            (place / "sidequest.json").write_bytes(as_json(broken_data(plain, rng)))
            found = ModelCard.read_from(place)
        for facts in (found.task, *found.tasks):
            rowless_task(facts)

    return run


def _records(good: Good) -> Target:
    cell = good.compared / "heu-size" / "seed-0"
    records: list[tuple[Path, Callable[[Path], Any]]] = [
        *(
            (good.run / kind.FILE, kind.read)
            for kind in (RunRecord, SelectionRecord, ScoresRecord, FactsRecord, ExamplesRecord)
        ),
        (good.compared / Comparison.FILE, Comparison.read),
        (cell / Outcome.FILE, Outcome.read),
        (good.truth, _truth),
        (good.log, read_log),
    ]
    tuning = {"version": 1, "chosen": {"train.epochs": 3.0}, "tried": [{"settings": {}, "scores": [0.5]}], "x": 3.0}

    def run(rng: random.Random, place: Path) -> None:
        path, read = rng.choice([*records, (place / "tuning.json", Tuning.read)])
        if path.name == "tuning.json":
            path.write_bytes(as_json(broken_data(tuning, rng)))
        elif path.suffix == ".json" and rng.random() < 0.7:
            plain = json.loads(path.read_text())
            plain.pop("sha256", None)
            (place / path.name).write_bytes(as_json(broken_data(plain, rng)))
        else:
            (place / path.name).write_bytes(broken_bytes(path.read_bytes(), rng))
        found = read(place / path.name)
        sealed = isinstance(found, Record) and b'"sha256"' in (place / path.name).read_bytes()
        if sealed and read_json(place / path.name) != read_json(path):  # a record may also read what lies beside it
            raise Silent(f"a sealed {path.name} with another content")

    return run


def _truth(path: Path) -> TruthTable:
    table = TruthTable.read(path)
    table.signal  # noqa: B018
    table.rank(table.best)
    return table


def _pages(good: Good) -> Target:
    def run(rng: random.Random, place: Path) -> None:
        shutil.copytree(good.run, place / "run", ignore=shutil.ignore_patterns("model", "checkpoints"))
        name = rng.choice(("recipe.json", "record.json", "scores.json", "examples.json", "selection.json", "run.json"))
        path = place / "run" / name
        plain = json.loads(path.read_text())
        plain.pop("sha256", None)
        path.write_bytes(as_json(broken_data(plain, rng)))
        text = write_page(place / "run").read_text(encoding="utf-8")
        if "<script>alert(1)" in text:
            raise Silent("markup of a record in the page")

    return run


def _settings(rng: random.Random, place: Path) -> None:
    names = [*TrainSettings.model_fields, "epoch", ""]
    text = f"train.{rng.choice(names)}={rng.choice(VALUES)}"
    given = parse_assignments([broken_bytes(text.encode("utf-8", "surrogatepass"), rng).decode("utf-8", "replace")])
    settings = parse(TrainSettings, given["train"], "--set")
    if not 0 < settings.epochs <= 1e6 or settings.batch_size < 1:
        raise Silent(f"settings that cannot be: {settings}")


REFUSED = SidequestError
