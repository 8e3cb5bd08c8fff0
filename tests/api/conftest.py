"""Small suites in memory, and a user's own files."""

import json

import numpy as np
import pandas as pd
import pytest

import sidequest as sq


def reviews(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    up = rng.integers(2, size=count)
    words = {1: ["lovely", "great", "superb"], 0: ["awful", "boring", "poor"]}
    nouns = ["film", "meal", "book", "hotel"]
    texts = [f"The {rng.choice(nouns)} number {rng.integers(1000)} was {rng.choice(words[int(each)])}." for each in up]
    return pd.DataFrame({"key": np.arange(count) + 100, "body": texts, "stars": np.where(up, "up", "down")})


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    return reviews(48, 0)


@pytest.fixture(scope="session")
def suite(frame, encoders) -> sq.Suite:
    """A primary and two candidates; three batches an epoch, so that a training run takes milliseconds."""
    return sq.Suite(
        primary=sq.Task("reviews", frame, text="body", label="stars"),
        candidates={
            "other": sq.Task("other", reviews(40, 1), text="body", label="stars"),
            "third": sq.Task("third", reviews(30, 2).to_dict("list"), text="body", label="stars"),
        },
        model={"kind": "pooled", "encoder": str(encoders()), "hidden": 8},
        train={"epochs": 2},
    )


@pytest.fixture
def files(tmp_path):
    """`reviews.csv`, `other.jsonl` and SST-2 in its official layout."""
    reviews(60, 0).to_csv(tmp_path / "reviews.csv", index=False)
    rows = reviews(80, 1).to_dict("records")
    (tmp_path / "other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "SST-2").mkdir()
    for name, count in (("train.tsv", 90), ("dev.tsv", 30)):
        part = reviews(count, count)
        table = pd.DataFrame({"sentence": part["body"], "label": (part["stars"] == "up").astype(int)})
        table.to_csv(tmp_path / "SST-2" / name, sep="\t", index=False)
    return tmp_path
