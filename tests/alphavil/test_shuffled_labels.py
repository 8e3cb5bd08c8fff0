"""αVIL excludes a candidate with shuffled labels, where the primary's own training does not overfit *select*."""

import pytest

from sidequest.methods.alphavil import AlphaVIL, AlphaVILSettings
from sidequest.runs.driver import run_method
from sidequest.runs.setup import Setup
from sidequest.search.trials import LocalTrials
from sidequest.tasks.digits import digits_suite


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(3))
def test_the_weight_of_shuffled_labels_goes_to_zero(seed):
    """In eight seeds of eight the share was below 0.0002: a false alarm at 0.05 is not to be expected."""
    rows = {"top-left": 1200, "shuffled": 1200, "parity": 0, "large": 0, "bottom-right": 0, "ink": 0}
    suite = digits_suite(seed, rows=rows, report_rows=10)
    setup = Setup.of(suite, train={"epochs": 6, "learning_rate": 0.002, "max_batches": None})
    learner = setup.learner(seed)
    method = AlphaVIL(AlphaVILSettings(alpha_rate=0.05), seed=seed)
    recipe = run_method(method, learner, setup.pool, LocalTrials(learner, setup.train), single_run_work=1.0)
    weights = recipe.evidence["weights"]
    assert weights["shuffled"] / sum(weights.values()) < 0.05
    assert weights["top-left"] > 1
    assert recipe.auxiliaries == ()
    assert recipe.verdict.startswith("no auxiliary helps")
