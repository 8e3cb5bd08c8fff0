"""Scoring rows by their attention heads: time and memory. `python benchmarks/head_importance.py [--rows N] [--many N]`.

1. Speed, on MiniLM, with one thread and with all cores: gates (one backward pass per batch of rows of similar length) against
   the way of GradTS's released code (batches of one row, all weight gradients, those of attention copied per row). In turns, and
   the median of the ratios. Exit code 1 below 4 times with all cores.
2. Memory: the peak above the model while 100,000 short rows are scored, stored and correlated, on a small encoder; and for a
   batch of 32 rows of 128 tokens on MiniLM. Exit code 1 at 1 GB or more.
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
import torch
import transformers

from sidequest.learning.protocol import HeadImportance, Warmup
from sidequest.learning.torch.head_importance import score_rows
from sidequest.learning.torch.learner import TorchLearner
from sidequest.learning.torch.powers import PowerStores
from sidequest.methods.base import Pool
from sidequest.methods.gradts.gradts import FgSettings, GradTSFg
from sidequest.model_settings import HfSettings
from sidequest.models.encoders import resolve
from sidequest.runs.peak_memory import PeakMemory
from sidequest.runs.setup import Setup
from sidequest.search.head_cache import HeadStore
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

LEAST_SPEEDUP, MOST_BYTES, ROUNDS = 4.0, 1e9, 5
WORDS = [
    "the",
    "a",
    "man",
    "dog",
    "film",
    "book",
    "said",
    "not",
    "plays",
    "good",
    "bad",
    "old",
    "city",
    "in",
    "on",
    "with",
]


def random_task(name: str, rows: int, mean_words: float, most_words: int = 60) -> Task:
    """Sentences of random words whose lengths are spread as in real corpora (log-normal)."""
    rng = np.random.default_rng(len(name))
    lengths = np.clip(rng.lognormal(np.log(mean_words), 0.5, rows), 1, most_words).astype(int)
    texts = [" ".join(rng.choice(WORDS, length)) for length in lengths]
    examples = Examples({"text": pa.array(texts)}, rng.integers(0, 2, rows), np.arange(rows))
    return Task(
        name,
        Objective.CLASSIFICATION,
        Form.TEXT,
        {"train": examples, "select": examples.take(np.arange(10))},
        ("a", "b"),
    )


def setup_of(tasks: list[Task], encoder: str) -> Setup:
    return Setup(Suite.of(tasks[0], tasks[1:]), HfSettings(encoder=encoder), TrainSettings(batch_size=32))


def released_way(learner: TorchLearner, task: Task, positions: np.ndarray) -> np.ndarray:
    """Row by row, in training mode: all gradients; those of queries, keys and values copied per layer; means of keys and values
    over what the released code takes for heads; normalised and stretched: [rows, layers, heads]."""
    inputs, model = learner.inputs(task.name, "train"), learner.model.train()
    heads = model.base.config.num_attention_heads
    found = []
    for position in positions:
        batch = inputs.collate(np.array([position]))
        torch.nn.functional.cross_entropy(model(task.name, batch), batch["labels"]).backward()
        matrix = []
        for layer in model.base.encoder.layer:
            weights = (getattr(layer.attention.self, name).weight for name in ("query", "key", "value"))
            _, key, value = (
                np.abs(w.grad.detach().view(len(w), heads, -1).permute(1, 0, 2).cpu().numpy()) for w in weights
            )
            means = (key + value).mean((1, 2))
            matrix.append(means / means.sum())
        model.zero_grad()
        low, high = np.min(matrix), np.max(matrix)
        found.append((np.array(matrix) - low) / (high - low))
    return np.array(found)


def speed(rows: int, threads: int) -> bool:
    torch.set_num_threads(threads)
    task = random_task("speed", rows, mean_words=22)
    learner = setup_of([task], "minilm").learner(0)
    lengths = learner.inputs(task.name, "train").lengths
    released_way(learner, task, np.arange(2))  # first calls allocate
    sum(len(values) for _, values in score_rows(learner, task.name))

    def released(positions: np.ndarray) -> float:
        start = time.perf_counter()
        released_way(learner, task, positions)
        return (time.perf_counter() - start) / len(positions)

    def gates() -> float:
        start = time.perf_counter()
        assert sum(len(values) for _, values in score_rows(learner, task.name)) == rows
        return (time.perf_counter() - start) / rows

    # In turns, and the median: another process on the same core slows large matrix products more than small ones.
    chunks = np.array_split(np.random.default_rng(0).permutation(rows), ROUNDS)
    times = np.array([(released(chunk), gates()) for chunk in chunks])
    ratio = float(np.median(times[:, 0] / times[:, 1]))
    one_by_one, together = np.median(times, axis=0) * 1e3
    print(
        f"MiniLM, {rows} rows of {lengths.mean():.0f} tokens on average, {threads} threads, medians of {ROUNDS} rounds:"
    )
    print(f"  released way {one_by_one:6.1f} ms a row")
    print(f"  gates        {together:6.1f} ms a row, {ratio:.1f} times faster")
    return ratio >= LEAST_SPEEDUP


def small_encoder(directory: Path) -> str:
    """MiniLM's tokeniser over a random BERT of 2 layers."""
    minilm = resolve("minilm").directory
    transformers.AutoTokenizer.from_pretrained(minilm).save_pretrained(directory)
    size = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 12, "intermediate_size": 64}
    transformers.BertModel(transformers.BertConfig(vocab_size=30522, **size)).save_pretrained(directory)
    return str(directory)


def memory(rows: int) -> bool:
    """Everything that gradts-fg does to score rows: reading and tokenising them, the pass, storing, reading back, τ, ids."""
    above = []
    with tempfile.TemporaryDirectory() as place:
        encoder = small_encoder(Path(place) / "encoder")
        for count in (rows // 4, rows):
            tasks = [random_task("primary", 64, 6), random_task("auxiliary", count, 6, 12)]
            cache = HeadStore(str, Path(place) / f"cache-{count}")
            learner = setup_of(tasks, encoder).learner(0, PowerStores(heads=cache))
            start = time.process_time()
            with PeakMemory() as peak:
                kept = score_as_fg(learner, tasks)
            assert abs(kept - count / 2) < count / 20
            above.append(peak.above or 0)
            rate = count / (time.process_time() - start)
            print(f"small encoder, {count:7,} rows: peak {above[-1] / 1e6:4.0f} MB above the model, {rate:.0f} rows/s")
    learner = setup_of([random_task("long", 32, 400, 400)], "minilm").learner(0)
    with PeakMemory() as peak:
        learner[HeadImportance].head_importance("long", Warmup(epochs=0))
    above.append(peak.above or 0)
    print(f"MiniLM, a batch of 32 rows of 128 tokens: peak {above[-1] / 1e6:.0f} MB, a second model included")
    return max(above) < MOST_BYTES


def score_as_fg(learner: TorchLearner, tasks: list[Task]) -> int:
    """The rounds of gradts-fg, as if its trials had chosen the auxiliary; how many of its rows are kept."""
    method, rng = GradTSFg(FgSettings(warmup_epochs=0, quantile=0.5)), np.random.default_rng(0)
    state = method.start(Pool("primary", {task.name: task.card for task in tasks}), rng)
    for _ in tasks:
        state = method.round(state, learner, rng)
    state = method.round(state.model_copy(update={"scores": [0.0, 1.0]}), learner, rng)
    return len(state.instances["auxiliary"].kept)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=300, help="for the speed; default 300")
    arguments.add_argument("--many", type=int, default=100_000, help="for the memory; default 100,000")
    given = arguments.parse_args()
    speed(given.rows, 1)
    fast = speed(given.rows, os.cpu_count() or 1)
    torch.set_num_threads(1)
    return 0 if memory(given.many) and fast else 1


if __name__ == "__main__":
    sys.exit(main())
