"""Where a known third of an auxiliary's rows is drawn from the primary's own distribution, it is found, and finding it pays."""

import numpy as np
import pytest

from sidequest.progress import Progress
from sidequest.recipe import Recipe
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup
from sidequest.tasks.planted import planted_suite, planted_truth
from tests.helpers.marks import slow_but

ROWS, TAKEN = 600, 100
PLAIN = {"rows": 100, "count": TAKEN, "epochs": 15, "finetune_epochs": 15}
SETTINGS = {**PLAIN, "discriminator_epochs": 15}  # of so few rows, five epochs are but 50 steps


def planted(encoder, seed):
    """`mixed`, a third like the primary, and `foreign`, nothing like it; the primary has 60 labels."""
    suite = planted_suite(seed, mixed=True, primary_rows=60, rows=ROWS, report_rows=400).subset(["mixed", "foreign"])
    truth = planted_truth(seed, rows=ROWS, mixed=True).primary_like["mixed"]
    return Setup.of(suite, {"encoder": str(encoder)}, {"max_batches": None}), truth


def precision(recipe, truth):
    taken = recipe.phases[0].subsets.get("mixed")
    return 0.0 if taken is None else float(np.isin(taken.ids, truth).sum() / TAKEN)


@pytest.mark.statistical
@pytest.mark.parametrize("seed", slow_but(range(3), 0))
@pytest.mark.parametrize("method", ["similarity", "similarity-ce"])
def test_the_rows_drawn_from_the_primary_are_found(word_bag, method, seed):
    setup, truth = planted(word_bag, seed)
    assert precision(select(setup, method, settings=SETTINGS, seed=seed), truth) > 0.9  # chance: a sixth
    setup, truth = planted(word_bag, seed)
    assert precision(select(setup, "random-data", settings=PLAIN), truth) < 0.3


class Killed(Exception):
    pass


def killed_after(setup, directory, calls, settings):
    class Killer(Progress):
        def round(self, done, total, entry, x):
            if done >= calls:
                raise Killed

    with pytest.raises(Killed):
        select(setup, "similarity", settings=settings, directory=directory, progress=Killer())


@pytest.mark.integration
def test_a_killed_ranking_goes_on_after_its_last_chunk_to_the_same_bytes(word_bag, tmp_path, monkeypatch):
    from sidequest.learning.torch.ranking import Ranker

    settings = {"rows": 50, "count": 100, "chunk": 200, "epochs": 1, "finetune_epochs": 1}
    whole = select(planted(word_bag, 0)[0], "similarity", settings=settings, directory=tmp_path / "whole")
    monkeypatch.setenv("SIDEQUEST_CACHE", str(tmp_path / "another"))
    for calls in (1, 3, 5):  # trained; two chunks ranked; four
        killed_after(planted(word_bag, 0)[0], tmp_path / "killed", calls, settings)
    ranked, logits = [], Ranker.logits

    def counting(self, task, positions):
        ranked.append((task.name, len(positions)))
        return logits(self, task, positions)

    monkeypatch.setattr(Ranker, "logits", counting)
    recipe = select(planted(word_bag, 0)[0], "similarity", settings=settings, directory=tmp_path / "killed")
    assert ranked == [("mixed", 200), ("mixed", 150)]  # of foreign all was done, and 200 of mixed
    assert recipe.to_json() == whole.to_json()
    same = [(tmp_path / run / "recipe.json").read_bytes() for run in ("whole", "killed")]
    assert same[0] == same[1]
    assert Recipe.read(tmp_path / "killed" / "recipe.json") == recipe


@pytest.mark.integration
def test_a_ladder_on_a_real_learner(word_bag, tmp_path):
    setup, _ = planted(word_bag, 0)
    settings = {"rows": 100, "ladder": True, "first": 400, "epochs": 2, "finetune_epochs": 2}
    recipe = select(setup, "similarity", settings=settings, directory=tmp_path / "run")
    assert [trial["rows"] for trial in recipe.evidence["trials"]] == [0, 400, 800, 1000]
    assert recipe.cost.trials == 4
    best = max(recipe.evidence["trials"], key=lambda trial: trial["select"])
    assert recipe.evidence["count"] == best["rows"]
