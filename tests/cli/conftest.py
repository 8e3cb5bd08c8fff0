"""The command line in this process, and a user's own files."""

import csv
import json
import sys

import numpy as np
import pytest

from sidequest.cli import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line in this process: (exit code, output, errors)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sidequest", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def reviews(tmp_path_factory):
    """A user's own files: reviews with a label, and a jsonl file of sentiment from elsewhere."""
    place = tmp_path_factory.mktemp("reviews")
    rng = np.random.default_rng(0)
    good, bad = ["lovely", "great", "superb", "charming"], ["awful", "boring", "poor", "dreadful"]

    def rows(count: int) -> list[tuple[str, str]]:
        out = []
        for _ in range(count):
            label = int(rng.integers(2))
            word = rng.choice(good if label else bad)
            noun = rng.choice(["film", "meal", "book", "hotel", "walk", "play"])
            out.append(
                (f'The {noun} number {rng.integers(1000)}, "as they say",\nwas {word}.', "up" if label else "down")
            )
        return out

    for name, count in (("reviews_train.csv", 60), ("reviews_test.csv", 40)):
        with (place / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\r\n")
            writer.writerow(["body", "stars"])
            writer.writerows(rows(count))
    with (place / "other.jsonl").open("w", encoding="utf-8") as file:
        for text, label in rows(80):
            file.write(json.dumps({"sentence": text, "label": label}) + "\n")
    return place
