"""Heads that start at a solution: linear probing, then fine-tuning (Kumar et al., 2022, https://arxiv.org/abs/2202.10054).

A head that starts at random numbers sends random gradients into the pretrained encoder until it has learned; with few rows the
encoder has then lost more than it gains. Here the last linear layer of every task's head starts at the regularised read-out of
its own inputs, with the encoder as it was pretrained: training begins at the level of a linear probe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sidequest.models.base import Batch, Inputs, head_key
from sidequest.models.devices import batch_tokens, chosen_device
from sidequest.models.hf_model import HfModel, LinearHead
from sidequest.models.native import final_layer
from sidequest.models.ragged import token_batches
from sidequest.models.readout import Features, FeaturesOf, read_out
from sidequest.numerics.linear_models import LinearModel
from sidequest.tasks.examples import Examples
from sidequest.tasks.splits import generator, limit
from sidequest.tasks.task import Objective, Task

HEAD_VERSION = 1  # of what a head's inputs are: a change of meaning must not find old solutions
# Rows that a start is fitted on, at most. Larger tasks have enough steps to correct what a sample of this size gets wrong, and
# encoding all rows of a large auxiliary would cost as much as the training itself.
START_ROWS = 2_000
# On the strength of a regression's read-out when a head starts from it. The strength that predicts best has learned train rows
# nearly by heart (a squared error of 0.13 there, 0.28 on other rows, with 300 pairs of STS-B), so that they give the encoder
# hardly a gradient; at ten times the strength it is 0.28 in both places, and the read-out's Pearson is lower by 0.003 only.
RIDGE_FACTOR = 10.0
# Below this part of the usual spread a feature has vanished: pretraining has driven its weight in the last normalisation to zero
# (three of MiniLM's 384 are 1e-9 to 1e-33). A head that divides by such a spread sends gradients of 1e30 into the encoder, and
# once they are clipped nothing else learns.
VANISHING = 1e-6


def start_at_read_out(
    model: HfModel, task: Task, features_of: FeaturesOf, standardise: Callable[[np.ndarray], np.ndarray], key: Any
) -> None:
    """Give the last layer of a task's head its read-out's weights. key: plain data that identifies the features."""
    layer = last_layer(model, task)
    if layer is None or not len(task.train):
        return
    rows = limit(task.train, START_ROWS, task.objective, generator(0, task.name, "start"))
    sample = task if rows is task.train else replace(task, splits={"train": rows}, notes=())
    solution = read_out(sample, features_of, standardise, key, ridge_factor=RIDGE_FACTOR)
    place_solution(model.heads[head_key(task.name)], layer, without_vanishing(solution.model))


def without_vanishing(solution: LinearModel) -> LinearModel:
    """The solution with no weight on features whose spread is nothing beside that of the others."""
    gone = solution.scale < VANISHING * np.median(solution.scale)
    return replace(
        solution,
        mean=np.where(gone, 0.0, solution.mean),
        scale=np.where(gone, 1.0, solution.scale),
        weight=np.where(gone[:, None], 0.0, solution.weight),
    )


def last_layer(model: HfModel, task: Task) -> nn.Linear | None:
    """The layer that gives a task's logits; None where a head ends in something else."""
    head = model.heads[head_key(task.name)]
    if isinstance(head, LinearHead):
        return head.classifier
    return final_layer(model.natives[task.name], task.outputs) if task.name in model.natives else None


def has_drawn_layers(model: HfModel, task: Task) -> bool:
    """Whether a head has layers before its last one: they are drawn from the seed, and so are the last layer's inputs then."""
    last = last_layer(model, task)
    return any(
        p.ndim > 1 for p in model.heads[head_key(task.name)].parameters() if last is None or p is not last.weight
    )


def place_solution(head: nn.Module, layer: nn.Linear, solution: LinearModel) -> None:
    """Write a solution into a head's last layer or, where the head does not standardise, fold it into one layer.

    Adam moves every weight by about the learning rate, so that a step changes a logit by up to the rate times the sum of the
    inputs' sizes: with 1,500 standardised inputs of a pair, a rate that suits the encoder overwrites the solution within an epoch
    and fits the train rows by heart. Inputs are therefore divided by the root of their number, and weights multiplied by it: the
    same function, which the head then leaves slowly and the encoder carries.
    """
    weight, bias = solution.weight, solution.bias
    with torch.no_grad():
        if isinstance(head, LinearHead):
            root = len(weight) ** 0.5
            head.mean.copy_(torch.from_numpy(solution.mean))
            head.scale.copy_(torch.from_numpy(solution.scale * root))
            weight = weight * root
        else:
            weight = weight / solution.scale[:, None]
            bias = bias - solution.mean @ weight
        layer.weight.copy_(torch.from_numpy(np.ascontiguousarray(weight.T)))
        if layer.bias is not None:
            layer.bias.copy_(torch.from_numpy(bias))


def layer_inputs(model: HfModel, inputs_of: Callable[[Task, Examples], Inputs]) -> FeaturesOf:
    """What reaches the last layer of a task's head, as the features of a read-out: computed with the model as it is."""

    def features_of(task: Task, examples: Examples) -> Features:
        layer = last_layer(model, task)
        assert layer is not None
        inputs = inputs_of(task, examples)
        device = chosen_device()
        values: list[np.ndarray] = [np.zeros((0, layer.in_features), np.float32)] * len(inputs)
        entering: list[Tensor] = []
        hook = layer.register_forward_pre_hook(lambda _, arguments: entering.append(arguments[0]))
        training = model.training
        try:
            model.to(device).eval()
            with torch.inference_mode():
                for positions in token_batches(inputs.lengths, batch_tokens(device)):
                    batch = {name: tensor.to(device) for name, tensor in inputs.collate(positions).items()}
                    model(task.name, batch)
                    for position, units in zip(positions, _by_row(task, entering.pop(), batch), strict=True):
                        values[position] = units.float().cpu().numpy()
        finally:
            hook.remove()
            model.train(training)
        counts = np.array([len(units) for units in values], dtype=np.int64)
        alone = task.objective not in (Objective.TAGGING, Objective.CHOICE)
        return Features(np.concatenate(values), None if alone else counts)

    return features_of


def _by_row(task: Task, entering: Tensor, batch: Batch) -> tuple[Tensor, ...]:
    """The layer's inputs, apart for each row: of its words, its choices, or its one text."""
    if task.objective == Objective.TAGGING:
        return entering[batch["words"]].split(batch["words"].sum(1).tolist())
    flat = entering.reshape(-1, entering.shape[-1])
    return flat.split(batch["choices"].tolist() if task.objective == Objective.CHOICE else 1)
