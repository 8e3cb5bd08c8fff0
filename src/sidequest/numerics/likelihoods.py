"""Negative log-likelihoods of linear models, as sums over samples, with their gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np


class Loss(ABC):
    """A negative log-likelihood over samples. A sample has one row of features, or (choices) several.

    outputs: numbers per row of features. strata: int64 [samples], what folds should hold in equal parts.
    shares: float64 [outputs], how probable an output is for a model without features.
    """

    outputs: int
    strata: np.ndarray
    shares: np.ndarray

    def __len__(self) -> int:
        return len(self.strata)

    def rows(self, samples: np.ndarray) -> np.ndarray:
        """The rows of features that belong to these samples."""
        return samples

    @abstractmethod
    def probabilities(self, logits: np.ndarray) -> np.ndarray:
        """float64 [rows, outputs]."""

    @abstractmethod
    def take(self, samples: np.ndarray) -> Loss:
        """The same loss over some of the samples."""

    @abstractmethod
    def __call__(self, logits: np.ndarray) -> tuple[float, np.ndarray]:
        """The sum over samples, and its gradient with respect to the logits; logits [rows, outputs]."""


class Softmax(Loss):
    """One class per sample. labels: int64 [n], below `classes`. weights: float64 [classes], a factor on each class's loss."""

    def __init__(self, labels: np.ndarray, classes: int, weights: np.ndarray | None = None) -> None:
        self.labels = self.strata = np.asarray(labels, dtype=np.int64)
        self.outputs, self.weights = classes, weights
        self.shares = np.bincount(self.labels, minlength=classes) / max(1, len(self.labels))

    def probabilities(self, logits: np.ndarray) -> np.ndarray:
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    def take(self, samples: np.ndarray) -> Softmax:
        return Softmax(self.labels[samples], self.outputs, self.weights)

    def __call__(self, logits: np.ndarray) -> tuple[float, np.ndarray]:
        place = np.arange(len(logits)), self.labels
        gradient = self.probabilities(logits)
        losses = -np.log(np.maximum(gradient[place], np.finfo(np.float64).tiny))
        gradient[place] -= 1
        if self.weights is not None:
            factors = self.weights[self.labels]
            losses, gradient = losses * factors, gradient * factors[:, None]
        return float(losses.sum()), gradient


class Sigmoids(Loss):
    """Any number of labels per sample, each of them yes or no by itself. targets: 0 or 1, [n, labels].

    weights: float64 [labels, 2], factors on the loss of samples without and with each label.
    """

    def __init__(self, targets: np.ndarray, weights: np.ndarray | None = None) -> None:
        self.targets, self.weights = np.asarray(targets, dtype=np.float64), weights
        self.outputs = self.targets.shape[1]
        self.shares = self.targets.sum(axis=0) / max(1, len(self.targets))
        # The rarest of a sample's labels: every fold should have some of each.
        rarity = np.where(self.targets > 0, -self.targets.sum(axis=0), -np.inf)
        has_one = self.targets.any(axis=1)
        self.strata = np.where(has_one, rarity.argmax(axis=1) if self.outputs else 0, self.outputs)

    def probabilities(self, logits: np.ndarray) -> np.ndarray:
        return 0.5 * (1 + np.tanh(0.5 * logits))

    def take(self, samples: np.ndarray) -> Sigmoids:
        return Sigmoids(self.targets[samples], self.weights)

    def __call__(self, logits: np.ndarray) -> tuple[float, np.ndarray]:
        losses = np.logaddexp(0, logits) - self.targets * logits
        gradient = self.probabilities(logits) - self.targets
        if self.weights is not None:
            factors = np.where(self.targets > 0, self.weights[:, 1], self.weights[:, 0])
            losses, gradient = losses * factors, gradient * factors
        return float(losses.sum()), gradient


class Choice(Loss):
    """One of several rows per sample: a softmax over the scores of its rows. counts: int64 [n], its rows; labels: int64 [n]."""

    outputs = 1

    def __init__(self, labels: np.ndarray, counts: np.ndarray) -> None:
        self.labels, self.counts = np.asarray(labels, dtype=np.int64), np.asarray(counts, dtype=np.int64)
        self.starts = np.cumsum(self.counts) - self.counts
        self.strata = self.labels
        self.shares = np.array([len(self.counts) / max(1, self.counts.sum())])

    def rows(self, samples: np.ndarray) -> np.ndarray:
        counts = self.counts[samples]
        inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(self.starts[samples], counts) + inside

    def take(self, samples: np.ndarray) -> Choice:
        return Choice(self.labels[samples], self.counts[samples])

    def probabilities(self, logits: np.ndarray) -> np.ndarray:
        scores = logits[:, 0]
        exponentials = np.exp(scores - np.repeat(np.maximum.reduceat(scores, self.starts), self.counts))
        return (exponentials / np.repeat(np.add.reduceat(exponentials, self.starts), self.counts))[:, None]

    def __call__(self, logits: np.ndarray) -> tuple[float, np.ndarray]:
        chosen = self.starts + self.labels
        gradient = self.probabilities(logits)
        losses = -np.log(np.maximum(gradient[chosen], np.finfo(np.float64).tiny))
        gradient[chosen] -= 1
        return float(losses.sum()), gradient


def present_classes(loss: Loss, present: np.ndarray | None = None) -> tuple[np.ndarray | None, Loss]:
    """A softmax over the classes that occur (or over those given), and which they are: bool [classes]; None: all of them."""
    if not isinstance(loss, Softmax):
        return None, loss
    if present is None:
        present = np.bincount(loss.labels, minlength=loss.outputs) > 0
    if present.all():
        return None, loss
    number = np.cumsum(present) - 1
    weights = None if loss.weights is None else loss.weights[present]
    return present, Softmax(number[loss.labels], int(present.sum()), weights)
