"""Ranking rows by a task discriminator: speed and memory. `python benchmarks/ranking.py [--rows N] [--many N]`.

1. Speed, on MiniLM, one thread, GLUE rows (`SIDEQUEST_DATA`): sidequest's way (chunks, rows of similar length together, no more
   padding than that) against the released code's (float32, every row padded to 128, 128 rows a batch, rows in their order), from
   text to score. Half of the rows go the old way before and half after, and time is the processor's, so that a busy machine does
   not matter. Exit code 1 below 3 times, or where Spearman's ρ of the two is 0.999 or less.
2. Memory and rate: `similarity` with `pooled` over 1,000,000 short generated texts, to the recipe: the peak above the model. The
   states come from a small random encoder, because MiniLM would need hours for a million texts here: it is the ranking
   that is measured. Exit code 1 at 1.5 GB or more.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
import transformers
from scipy.stats import spearmanr

from sidequest.learning.protocol import Discrimination, TaskDiscriminator
from sidequest.model_settings import HfSettings, PooledSettings
from sidequest.models.encoders import resolve
from sidequest.progress import Lines
from sidequest.runs.peak_memory import PeakMemory
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.loading import load_task
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

LEAST_SPEEDUP, LEAST_RHO, MOST_BYTES = 3.0, 0.999, 1.5e9
DATA = Path(os.environ.get("SIDEQUEST_DATA") or Path(__file__).parents[2] / "shared" / "data") / "glue"
FOLDERS = {"rte": "RTE", "mnli": "MNLI", "qqp": "QQP", "qnli": "QNLI", "sst2": "SST-2", "cola": "CoLA", "stsb": "STS-B"}
PADDED, BATCH = 128, 128


def glue_tasks(rows: int) -> list[Task]:
    """RTE as the primary; of the others, in proportion to their size in GLUE's pool, `rows` rows to rank together."""
    tasks = [load_task(n, {"catalog": n, "path": str(DATA / f), "limit": 40_000}) for n, f in FOLDERS.items()]
    sizes = np.array([393, 364, 105, 67, 8.5, 5.7])
    kept = [tasks[0]]
    for task, share in zip(tasks[1:], sizes / sizes.sum(), strict=True):
        keep = min(len(task.train), 32 + max(8, round(rows * share)))
        splits = {**task.splits, "train": task.train.take(np.arange(keep))}
        kept.append(Task(task.name, task.objective, task.form, splits, task.labels, task.metrics, task.kind))
    return kept


def released_way(ranker, tokeniser, task: Task, positions: np.ndarray, column: int) -> np.ndarray:
    """Float32, every row padded to 128 tokens, batches of 128 rows as they come."""
    scores = []
    columns = [task.train.columns[name] for name in ("text", "text_b") if name in task.train.columns]
    for start in range(0, len(positions), BATCH):
        rows = pa.array(positions[start : start + BATCH])
        texts = [column.take(rows).to_pylist() for column in columns]
        batch = tokeniser(*texts, padding="max_length", truncation=True, max_length=PADDED, return_tensors="pt")
        with torch.inference_mode():
            _, features = ranker.pooled(task.name, dict(batch))
            scores.append(ranker.discriminator(features)[:, column].numpy())
    return np.concatenate(scores)


def speed(rows: int) -> bool:
    tasks = glue_tasks(rows)
    setup = Setup(Suite.of(tasks[0], tasks[1:]), HfSettings(), TrainSettings(learning_rate=2e-5))
    learner = setup.learner(0)
    of = Discrimination(rows=32, epochs=1)
    ranker = learner[TaskDiscriminator].trained(of).ranker
    column = ranker.names.index("rte")
    tokeniser = transformers.AutoTokenizer.from_pretrained(resolve("minilm").directory)
    unused = {
        task.name: np.flatnonzero(np.isin(task.train.ids, learner[TaskDiscriminator].rows_to_rank(task.name, of)))
        for task in tasks[1:]
    }
    halves = {name: np.array_split(np.random.default_rng(0).permutation(len(at)), 2) for name, at in unused.items()}
    slow = {name: np.zeros(len(at), dtype=np.float32) for name, at in unused.items()}

    def released(half: int) -> float:
        start = time.process_time()
        for task in tasks[1:]:
            chosen = halves[task.name][half]
            slow[task.name][chosen] = released_way(ranker, tokeniser, task, unused[task.name][chosen], column)
        return time.process_time() - start

    ranker.logits(tasks[1], unused["mnli"][:256])  # first calls allocate
    padded = released(0)
    start = time.process_time()
    fast = {task.name: ranker.logits(task, unused[task.name])[:, column] for task in tasks[1:]}
    bucketed = time.process_time() - start
    padded += released(1)
    count = sum(map(len, unused.values()))
    rho = float(spearmanr(np.concatenate(list(slow.values())), np.concatenate(list(fast.values()))).statistic)
    print(f"MiniLM, {count:,} GLUE rows, one thread, text to score:")
    print(f"  released way {count / padded:7.1f} rows/s")
    print(
        f"  sidequest    {count / bucketed:7.1f} rows/s, {padded / bucketed:.2f} times as fast; Spearman's ρ {rho:.6f}"
    )
    return padded / bucketed >= LEAST_SPEEDUP and rho > LEAST_RHO


WORDS = ("the", "a", "man", "dog", "film", "book", "said", "not", "plays", "good", "bad", "old", "city", "river", "red")


def many_texts(name: str, rows: int) -> Task:
    """Short texts, nearly all different."""
    rng = np.random.default_rng(len(name))
    columns = [pa.array(WORDS).take(pa.array(rng.integers(0, len(WORDS), rows))) for _ in range(4)]
    numbers = pa.array(rng.integers(0, 10_000_000, rows)).cast(pa.string())
    texts = pc.binary_join_element_wise(*columns, numbers, " ")
    examples = Examples({"text": texts}, rng.integers(0, 2, rows), np.arange(rows))
    head = examples.take(np.arange(min(rows, 100)))
    return Task(
        name, Objective.CLASSIFICATION, Form.TEXT, {"train": examples, "select": head, "report": head}, ("a", "b")
    )


def small_encoder(directory: Path) -> str:
    """MiniLM's tokeniser over a random BERT of one layer."""
    transformers.AutoTokenizer.from_pretrained(resolve("minilm").directory).save_pretrained(directory)
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    transformers.BertModel(transformers.BertConfig(vocab_size=30522, **size)).save_pretrained(directory)
    return str(directory)


def memory(rows: int) -> bool:
    """All that `sidequest select -m similarity` does, with a tenth of the rows taken."""
    with tempfile.TemporaryDirectory() as place:
        os.environ["SIDEQUEST_CACHE"] = str(Path(place) / "cache")
        encoder = small_encoder(Path(place) / "encoder")
        suite = Suite.of(many_texts("primary", 1000), [many_texts("auxiliary", rows)])
        setup = Setup(suite, PooledSettings(encoder=encoder), TrainSettings())
        setup.family.frozen.model  # noqa: B018 - loads the encoder
        begun, start = time.process_time(), time.perf_counter()
        with PeakMemory() as peak:
            recipe = select(
                setup, "similarity", settings={"share": 0.1}, directory=Path(place) / "run", progress=Lines(30)
            )
        spent = time.process_time() - begun
        taken = sum(recipe.evidence["taken"].values())
        above = peak.above or 0
        print(f"pooled over a small random encoder, {rows:,} rows, {taken:,} taken, states computed on the way:")
        print(f"  {rows / spent:,.0f} rows/s of processor time ({time.perf_counter() - start:.0f} s by the clock)")
        print(f"  peak {above / 1e6:,.0f} MB above the model and the texts")
        return above < MOST_BYTES


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=2000, help="for the speed, 0: leave out; default 2,000")
    arguments.add_argument(
        "--many", type=int, default=1_000_000, help="for the memory, 0: leave out; default 1,000,000"
    )
    given = arguments.parse_args()
    torch.set_num_threads(1)
    fine = [speed(given.rows)] if given.rows else []
    fine += [memory(given.many)] if given.many else []
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
