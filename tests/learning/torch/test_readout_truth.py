"""The read-out's probability of the truth, against scikit-learn's own arithmetic on its logits."""

from __future__ import annotations

import numpy as np
import pytest

from sidequest.runs.setup import Setup
from sidequest.tasks.loading import load_suite


def test_the_mean_probability_agrees_with_the_read_outs_own_predictions():
    setup = Setup.of(load_suite("digits"))
    learner, task = setup.learner(0), setup.suite.tasks["top-left"]
    truth = learner.read_out_truth("top-left")
    logits, _ = setup.family.read_out(task).logits(task.splits["select"])
    rows = np.exp(logits - logits.max(1, keepdims=True))
    wanted = np.asarray(task.splits["select"].target)
    by_hand = [row[label] / row.sum() for row, label in zip(rows, wanted, strict=True)]
    assert truth == pytest.approx(by_hand)
    right = logits.argmax(1) == wanted
    assert truth[right].mean() > truth[~right].mean()
    assert len(truth) == len(task.splits["select"])
