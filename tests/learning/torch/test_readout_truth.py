"""The read-out's likelihood of the truth, against arithmetic on its logits."""

from __future__ import annotations

import numpy as np

from sidequest.learning.likelihood import Items, row_likelihood
from sidequest.runs.setup import Setup
from sidequest.tasks.loading import load_suite
from sidequest.tasks.task import Objective


def test_the_likelihood_agrees_with_the_read_outs_own_logits():
    setup = Setup.of(load_suite("digits"))
    learner, task = setup.learner(0), setup.suite.tasks["top-left"]
    truth = learner.read_out_truth("top-left")
    logits, _ = setup.family.read_out(task).logits(task.splits["select"])
    wanted = np.asarray(task.splits["select"].target)
    ones = np.ones(len(wanted), dtype=np.int64)
    # One temperature is fitted to all rows, so logits twice as large have the same likelihood.
    np.testing.assert_allclose(
        truth, row_likelihood(Items(2 * logits, wanted, ones), Objective.CLASSIFICATION), atol=1e-3
    )
    right = logits.argmax(1) == wanted
    assert truth[right].mean() > truth[~right].mean()
    assert len(truth) == len(task.splits["select"])
