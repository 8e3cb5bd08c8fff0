"""The training loop against two alternatives, on one model and the same rows, in one run.

    python benchmarks/engine.py            (needs the `demo` extra; the second part also needs: pip install accelerate)

1. a hand-written minimal PyTorch loop on the very same batches: sidequest must reach 0.95 of its examples/s;
2. the Hugging Face Trainer with dynamic padding: sidequest must reach 1.2 times its examples/s.

Rounds alternate between the contestants, so that a noisy machine is noisy for all; the ratio is of the medians.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import torch

from sidequest.learning.torch.learner import TorchLearner
from sidequest.learning.torch.losses import task_loss
from sidequest.model_settings import HfSettings, ModelSettings
from sidequest.models import family
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

WORDS = [
    "the",
    "river",
    "market",
    "was",
    "quiet",
    "and",
    "nobody",
    "could",
    "find",
    "a",
    "reason",
    "for",
    "it",
    "today",
]


def sentences(count: int, rng: np.random.Generator) -> list[str]:
    """English words in sentences whose lengths are spread like those of real text (log-normal around 20 words)."""
    lengths = np.clip(rng.lognormal(3.0, 0.6, count), 3, 110).astype(int)
    return [" ".join(rng.choice(WORDS, length)) for length in lengths]


def make_suite(rows: int) -> Suite:
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, rows)
    examples = Examples({"text": pa.array(sentences(rows, rng))}, target, np.arange(rows))
    task = Task("text", Objective.CLASSIFICATION, Form.TEXT, {"train": examples, "select": examples}, ("no", "yes"))
    return Suite.of(task)


def minimal_round(learner: TorchLearner, steps: int) -> int:
    """What one would write by hand: the same batches and optimiser, nothing else."""
    model, task = learner.model, learner.suite.tasks["text"]
    inputs, stream = learner.inputs("text", "train"), learner.stream("text")
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
    parameters = list(model.parameters())
    seen = 0
    model.train()
    for _ in range(steps):
        positions = stream.next()
        batch = inputs.collate(positions)
        loss = task_loss(task, model("text", batch), batch["labels"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        seen += len(positions)
    return seen


def sidequest_round(learner: TorchLearner, steps: int) -> int:
    before = learner.meter.of("text").examples
    learner.begin(steps)
    learner.train("text", steps)
    return learner.meter.of("text").examples - before


def trainer_round(suite: Suite, settings: ModelSettings, batch_size: int, steps: int) -> int:
    from datasets import Dataset
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
    )

    from sidequest.models.encoders import resolve

    place = str(resolve(settings.encoder).directory)
    tokeniser = AutoTokenizer.from_pretrained(place)
    rows = suite.tasks["text"].train
    data = Dataset.from_dict({"text": rows.columns["text"].to_pylist(), "labels": np.asarray(rows.target).tolist()})
    data = data.map(
        lambda batch: tokeniser(batch["text"], truncation=True, max_length=settings.max_length),
        batched=True,
        remove_columns=["text"],
    )
    model = AutoModelForSequenceClassification.from_pretrained(place, num_labels=2)
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(
            output_dir=directory,
            per_device_train_batch_size=batch_size,
            max_steps=steps,
            learning_rate=5e-5,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            dataloader_drop_last=True,
        )
        collator = DataCollatorWithPadding(tokeniser)
        trainer = Trainer(model=model, args=arguments, train_dataset=data, data_collator=collator)
        start = time.perf_counter()
        trainer.train()
        trainer_round.seconds = time.perf_counter() - start  # type: ignore[attr-defined]
    return batch_size * steps


def timed(function: Callable[[], int]) -> float:
    start = time.perf_counter()
    seen = function()
    return seen / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()

    suite = make_suite(options.steps * options.batch_size * 4)
    settings = HfSettings(encoder=options.encoder)
    train = TrainSettings(batch_size=options.batch_size, weight_decay=0.0)
    ours = TorchLearner(suite, family(suite, settings), train, seed=0)
    by_hand = ours.fresh(0)
    contestants: dict[str, Callable[[], float]] = {
        "sidequest": lambda: timed(lambda: sidequest_round(ours, options.steps)),
        "minimal loop": lambda: timed(lambda: minimal_round(by_hand, options.steps)),
    }
    if importlib.util.find_spec("accelerate") is not None:

        def trainer() -> float:
            seen = trainer_round(suite, settings, options.batch_size, options.steps)
            return seen / trainer_round.seconds  # type: ignore[attr-defined]  # without loading and tokenising

        contestants["Hugging Face Trainer"] = trainer
    else:
        print("The Hugging Face Trainer is left out: pip install accelerate")
    speeds: dict[str, list[float]] = {name: [] for name in contestants}
    for round_number in range(options.rounds + 1):
        for name, run in contestants.items():
            speed = run()
            if round_number:  # the first round warms up
                speeds[name].append(speed)
    reference = statistics.median(speeds["sidequest"])
    for name, found in speeds.items():
        middle = statistics.median(found)
        print(f"{name:22} {middle:7.1f} examples/s   sidequest / this: {reference / middle:.2f}")


if __name__ == "__main__":
    main()
