"""What αVIL costs beyond ordinary training: memory per task, and time per α-step.

    python benchmarks/deltas.py

1. Memory. An epoch (a delta of every task, α-steps, write-back) in a process of its own for 2, 4 and 8 tasks; its highest
   resident memory must grow by one copy of the parameters per task (0.9 to 1.1). Optimiser states that are kept per task come on
   top: one copy for SGD with momentum, two for AdamW.
2. Time. An α-step must take at most 1.15 times an ordinary forward and backward pass on the same batch. Rounds alternate between
   the two; the ratio is the median over rounds, in processor time, because other work may share the machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from sidequest.learning.protocol import Deltas
from sidequest.learning.torch.learner import TorchLearner
from sidequest.learning.torch.losses import task_loss
from sidequest.model_settings import ConvnetSettings, ModelSettings
from sidequest.models import family
from sidequest.models.base import Batch, Family, Inputs, MultiTaskModel
from sidequest.settings import TrainSettings
from sidequest.tasks.examples import Examples
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective, Task

VOCABULARY, WIDTH, LENGTH = 20_000, 384, 32


def suite_of(tasks: int, shape: tuple[int, ...], rows: int) -> Suite:
    """Noise with random labels: speed and memory do not depend on what is learned."""
    made = []
    for number in range(tasks):
        rng = np.random.default_rng(number)
        images = rng.integers(0, 256, (rows, *shape)).astype(np.uint8)
        examples = Examples({"image": images}, rng.integers(0, 10, rows), np.arange(rows))
        labels = tuple("0123456789")
        splits = {"train": examples, "select": examples}
        made.append(Task(f"task-{number}", Objective.CLASSIFICATION, Form.IMAGE, splits, labels))
    return Suite.of(made[0], made[1:])


class TokenInputs(Inputs):
    def __init__(self, examples: Examples) -> None:
        self.tokens = torch.from_numpy(np.asarray(examples.columns["image"])).flatten(1).long() * (VOCABULARY // 256)
        self.target = torch.from_numpy(np.asarray(examples.target))
        self.lengths = np.full(len(examples), LENGTH)

    def collate(self, positions: np.ndarray) -> Batch:
        return {"tokens": self.tokens[positions], "labels": self.target[positions]}


class Transformer(MultiTaskModel):
    """Of MiniLM's kind: six layers of 384, and nearly half of the parameters in the embeddings."""

    def __init__(self, suite: Suite) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 12, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.heads = nn.ModuleDict({name: nn.Linear(WIDTH, 10) for name in suite.tasks})

    def forward(self, task: str, batch: Batch) -> Tensor:
        return self.heads[task](self.encoder(self.embed(batch["tokens"]))[:, 0])


class TransformerFamily(Family):
    kind = "transformer"

    def inputs(self, task: Task, examples: Examples) -> Inputs:
        return TokenInputs(examples)

    def build(self, seed: int) -> MultiTaskModel:
        torch.manual_seed(seed)
        return Transformer(self.suite)

    def export(self, model: MultiTaskModel, task: Task, directory: Path) -> None:
        raise TypeError("a benchmark exports nothing")


def learner_of(kind: str, tasks: int, rows: int, optimizer: str) -> TorchLearner:
    shape = (1, 28, 28) if kind == "convnet" else (1, 1, LENGTH)
    suite = suite_of(tasks, shape, rows)
    made = (
        family(suite, ConvnetSettings())
        if kind == "convnet"
        else TransformerFamily(suite, ModelSettings(kind="transformer"))
    )
    train = TrainSettings(batch_size=rows, eval_batch_size=rows, optimizer=optimizer)  # type: ignore[arg-type]
    return TorchLearner(suite, made, train)


def epoch(learner: TorchLearner, keep: bool) -> None:
    """One epoch of αVIL."""
    deltas = [learner[Deltas].collect_delta(task, 1, weight=0.5, keep_optimizer=keep) for task in learner.tasks]
    alphas = np.ones(len(deltas))
    for _ in range(2):
        learner[Deltas].merged_loss(learner.primary, deltas, alphas)
    learner[Deltas].apply_deltas(deltas, alphas)


def peak_memory(tasks: int, optimizer: str, keep: bool) -> tuple[int, int]:
    """(highest resident bytes of this process after two epochs, bytes of the parameters)."""
    torch.set_num_threads(1)
    learner = learner_of("transformer", tasks, 8, optimizer)
    learner[Deltas].begin_deltas(dict.fromkeys(learner.tasks, 10))
    for _ in range(2):
        epoch(learner, keep)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in kilobytes
    return peak, sum(p.nbytes for p in learner.model.parameters())


def memory_growth(optimizer: str, keep: bool) -> float:
    """Growth per task between 2 and 8 tasks, in copies of the parameters; prints the way there."""
    peaks, parameters = {}, 0
    for tasks in (2, 4, 8):
        command = [sys.executable, __file__, "--measure", str(tasks), optimizer, str(int(keep))]
        # Tensors get pages of their own and give them back, so that resident memory is what is in use and not the heap's holes.
        environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
        output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        peaks[tasks], parameters = map(int, output.split())
    growth = [(peaks[b] - peaks[a]) / (b - a) / parameters for a, b in ((2, 4), (4, 8), (2, 8))]
    told = ", ".join(f"{tasks} tasks {peak / 2**20:.0f} MiB" for tasks, peak in peaks.items())
    state = "kept" if keep else "fresh"
    print(f"{optimizer:5} {state:5}: {told}; parameters {parameters / 2**20:.0f} MiB")
    print(f"             growth per task: 2 to 4 {growth[0]:.2f}, 4 to 8 {growth[1]:.2f} copies of the parameters")
    return growth[2]


def step_ratio(kind: str, tasks: int, rows: int, rounds: int) -> float:
    """Time of an α-step over that of a forward and backward pass, both on the same batch without dropout."""
    learner = learner_of(kind, tasks, rows, "sgd")
    learner[Deltas].begin_deltas(dict.fromkeys(learner.tasks, 10))
    deltas = [learner[Deltas].collect_delta(task, 1) for task in learner.tasks]
    alphas, task = np.linspace(0.9, 1.1, tasks), learner.suite[learner.primary]
    inputs = learner.inputs(task.name, "select")

    def plain() -> None:
        batch = inputs.collate(np.arange(rows))
        learner.model.eval()
        learner.model.zero_grad(set_to_none=True)
        loss = task_loss(task, learner.model(task.name, batch), batch["labels"])
        loss.backward()
        loss.item()

    def alpha_step() -> None:
        learner[Deltas].merged_loss(task.name, deltas, alphas)

    times: dict[str, list[float]] = {"plain": [], "alpha": []}
    for index in range(rounds + 1):
        for name, function in (("plain", plain), ("alpha", alpha_step)):
            start = time.process_time()  # of this process, on one thread
            function()
            if index:  # the first round warms up
                times[name].append(time.process_time() - start)
    one, other = (statistics.median(times[name]) for name in ("plain", "alpha"))
    ratio = statistics.median(b / a for a, b in zip(times["plain"], times["alpha"], strict=True))
    print(
        f"{kind:11} batch of {rows}, {tasks} tasks: forward and backward {one * 1e3:.1f} ms, α-step {other * 1e3:.1f} ms, "
        f"ratio {ratio:.3f}"
    )
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--measure", nargs=3, metavar=("TASKS", "OPTIMIZER", "KEEP"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.measure:
        tasks, optimizer, keep = options.measure
        print(*peak_memory(int(tasks), optimizer, keep == "1"))
        return

    print("Memory")
    fresh = memory_growth("adamw", keep=False)
    kept = {"sgd": memory_growth("sgd", keep=True), "adamw": memory_growth("adamw", keep=True)}
    print("\nTime")
    ratios = [step_ratio("convnet", tasks, 256, options.rounds) for tasks in (2, 4, 8)]
    ratios += [step_ratio("transformer", tasks, 128, max(3, options.rounds // 10)) for tasks in (2, 4, 8)]
    print(f"\na delta per task: {fresh:.2f} copies of the parameters (0.9 to 1.1)")
    print(f"with optimiser states kept: sgd {kept['sgd']:.2f} (2), adamw {kept['adamw']:.2f} (3)")
    print(f"α-step over forward and backward: at most {max(ratios):.3f} (1.15)")
    if not (0.9 <= fresh <= 1.1 and max(ratios) <= 1.15):
        sys.exit("a target was missed")


if __name__ == "__main__":
    main()
