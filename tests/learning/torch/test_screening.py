"""Labels that know of the primary's are told from those that do not, without training."""

from __future__ import annotations

import numpy as np

from sidequest.learning.protocol import LabelScreen
from sidequest.runs.setup import Setup
from sidequest.tasks.loading import load_suite


def test_related_labels_are_above_shuffled_ones_and_nothing_is_trained():
    learner = Setup.of(load_suite("digits")).learner(0)
    before = learner.snapshot(weights_only=True)
    found = {name: learner[LabelScreen].label_relatedness(name) for name in ("large", "parity", "shuffled")}
    assert min(found["large"], found["parity"]) > found["shuffled"]
    assert all(np.isfinite(list(found.values())))
    assert sum(count.batches for count in learner.meter.tasks.values()) == 0
    assert learner.meter.tasks["large"].evaluated_examples == 200  # its own read-out, and that of its shuffled labels
    after = learner.snapshot(weights_only=True)
    assert all(np.array_equal(before.tensors[name], after.tensors[name]) for name in before.tensors)
