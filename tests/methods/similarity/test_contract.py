"""The three methods keep the contract of methods on a simulated learner, and decide there as they should."""

import functools
import re

import numpy as np
import pytest

from sidequest.errors import SettingsError
from sidequest.learning.protocol import Discrimination, TaskDiscriminator
from sidequest.methods import get_method
from sidequest.methods.base import Pool
from sidequest.methods.similarity.row_sampling import pack, random_order, unpack
from sidequest.methods.similarity.similarity import MAPPED
from sidequest.numerics.top import top_positions
from sidequest.runs.selecting import make_method
from sidequest.simulation.similarity import SimulatedSimilarity
from sidequest.testing import check_learner, check_method
from sidequest.testing.check_method import run, simulated_learner
from tests.helpers import ROOT

SMALL = {"rows": 100, "epochs": 1, "finetune_epochs": 1}
SETTINGS = {
    "similarity": {**SMALL, "count": 300, "chunk": 500},
    "similarity-ce": {**SMALL, "share": 0.2, "chunk": 500},
    "random-data": {**SMALL, "count": 300},
}


def likeness_learner(candidates, seed):
    return SimulatedSimilarity(simulated_learner(candidates, seed).simulation, seed=seed)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_contract(name):
    fresh = name == "similarity"  # the others start in the same way
    check_method(name, settings=SETTINGS[name], make_learner=likeness_learner, fresh_process=fresh)


@pytest.mark.parametrize("name", [pytest.param("similarity", marks=pytest.mark.slow), "random-data"])
def test_the_contract_with_a_ladder(name):
    settings = {**SMALL, "ladder": True, "first": 400} | ({} if name == "random-data" else {"chunk": 700})
    check_method(name, settings=settings, make_learner=likeness_learner, fresh_process=False)


def test_the_simulated_rows_are_a_learner_with_the_power():
    check_learner(functools.partial(likeness_learner, ("close", "far", "harmful", "near")))
    assert isinstance(likeness_learner((), 0), TaskDiscriminator)


def test_the_top_rows_of_all_auxiliaries_together_and_two_phases():
    recipe = run(get_method("similarity"), SETTINGS["similarity"], likeness_learner)
    together, alone = recipe.phases
    learner, of = likeness_learner(("close", "far", "harmful", "near"), 3), Discrimination("bce", 100, seed=3)
    every = [
        (score, name, row)
        for name in ("close", "far", "harmful", "near")
        for row, score in zip(learner.rows_to_rank(name, of), learner.similarities(name, of), strict=True)
    ]
    best = sorted(every, key=lambda each: -each[0])[:300]
    for name in recipe.auxiliaries:
        assert together.subsets[name].ids.tolist() == sorted(int(row) for _, task, row in best if task == name)
        assert together.shares[name] == len(together.subsets[name].ids)
    assert sum(len(subset.ids) for subset in together.subsets.values()) == 300
    assert together.shares["primary"] == 320
    assert (together.order, together.epochs, together.stop_early) == ("shuffle", 1, False)
    assert (alone.tasks, alone.epochs) == (("primary",), 1)
    assert "harmful" not in together.shares  # it gave no row: no head does any work
    assert recipe.evidence["taken"] == {name: len(s.ids) for name, s in together.subsets.items()}
    assert recipe.evidence["threshold"] == pytest.approx(best[-1][0])
    shown = recipe.evidence["ranked"]["near"]
    assert shown["best"][0][1] == max(score for score, name, _ in every if name == "near")
    assert shown["worst"][0][1] == min(score for score, name, _ in every if name == "near")
    assert sum(shown["histogram"]) == shown["rows"] == 860


def test_its_cost_is_the_discriminator_and_one_look_at_every_row():
    recipe = run(get_method("similarity"), SETTINGS["similarity"], likeness_learner)
    mapped = 5 * MAPPED  # some rows of every task once more, for the map of features
    assert recipe.cost.evaluated_examples == (640 + 480 + 800 + 960) - 4 * 100 + mapped
    assert {name: len(rows) for name, rows in recipe.evidence["features"].items()} == dict.fromkeys(
        ("primary", "close", "far", "harmful", "near"), MAPPED
    )
    assert recipe.cost.batches == 5 * 5 * 4  # five tasks, five epochs, four batches of 32
    assert run(get_method("random-data"), SETTINGS["random-data"], likeness_learner).cost.x == 0


def test_random_data_draws_from_the_same_pool_and_gives_every_row_the_same_chance():
    recipe = run(get_method("random-data"), SETTINGS["random-data"], likeness_learner)
    learner, aside = likeness_learner(("close", "far", "harmful", "near"), 3), Discrimination("bce", 100, seed=3)
    assert sum(recipe.evidence["taken"].values()) == 300
    for name, subset in recipe.phases[0].subsets.items():
        assert set(subset.ids) <= set(learner.rows_to_rank(name, aside).tolist())
    assert recipe.evidence["pool"] == {"close": 540, "far": 380, "harmful": 700, "near": 860}
    all_rows = run(get_method("random-data"), {**SMALL, "rows": 0, "share": 1.0}, likeness_learner)
    assert all_rows.evidence["taken"] == {"close": 640, "far": 480, "harmful": 800, "near": 960}


def test_resampling_keeps_the_mix_and_changes_the_rows():
    best = run(get_method("similarity"), SETTINGS["similarity"], likeness_learner)
    again = run(get_method("similarity"), {**SETTINGS["similarity"], "resample": True}, likeness_learner)
    assert again.evidence["taken"] == best.evidence["taken"]
    assert again.phases[0].shares == best.phases[0].shares
    for name, subset in again.phases[0].subsets.items():
        assert len(set(subset.ids)) == len(subset.ids)
        assert subset != best.phases[0].subsets[name]


def test_a_ladder_doubles_and_takes_the_smallest_of_the_best():
    method = make_method("similarity", {**SMALL, "ladder": True, "first": 500})
    recipe = run(type(method), {**SMALL, "ladder": True, "first": 500}, likeness_learner)
    trials = recipe.evidence["trials"]
    assert [trial["rows"] for trial in trials] == [0, 500, 1000, 2000, 2480]
    scores = [trial["select"] for trial in trials]
    assert recipe.evidence["count"] == trials[int(np.argmax(scores))]["rows"]
    state = method.start(likeness_learner(("near",), 0).pool(), np.random.default_rng(0))
    state = method._with_drawn(state, np.zeros(860), np.arange(860))
    plans = method.ask(state, 2)
    assert [plan.label for plan in plans] == ["similarity: 0 rows", "similarity: 500 rows"]
    for score in (0.5, 0.7, 0.7):
        state = method.tell(state, method.ask(state, 1)[0], score)
    assert method.done(state)
    assert method.recipe(state).evidence["count"] == 500


class Strange(SimulatedSimilarity):
    """Scores with NaN and infinities, and equal ones."""

    def similarities(self, task, discrimination):
        scores = np.round(super().similarities(task, discrimination), 1)
        scores[::3] = np.nan
        scores[1::30] = np.inf
        return scores


def strange_learner(candidates, seed):
    return Strange(simulated_learner(candidates, seed).simulation, seed=seed)


def test_scores_that_are_no_numbers_are_left_out_and_counted():
    recipe = run(get_method("similarity"), {**SMALL, "count": 1000}, strange_learner)
    notes = recipe.evidence["notes"]
    assert any(re.match(r"'near': 316 of 860 rows have a score that is not a finite number", note) for note in notes)
    assert sum(recipe.evidence["taken"].values()) == 1000
    learner, of = strange_learner(("near",), 3), Discrimination("bce", 100, seed=3)
    bad = learner.rows_to_rank("near", of)[~np.isfinite(learner.similarities("near", of))]
    assert not set(bad.tolist()) & set(recipe.phases[0].subsets["near"].ids)
    assert np.isfinite([score for _, score in recipe.evidence["ranked"]["near"]["best"]]).all()
    check_method("similarity", settings={**SMALL, "count": 900}, make_learner=strange_learner, fresh_process=False)


class Hopeless(SimulatedSimilarity):
    def similarities(self, task, discrimination):
        return np.full(len(self.rows_to_rank(task, discrimination)), np.nan, dtype=np.float32)


def test_where_no_score_is_a_number_the_primary_trains_alone():
    recipe = run(
        get_method("similarity"),
        SMALL,
        lambda candidates, seed: Hopeless(simulated_learner(candidates, seed).simulation, seed=seed),
    )
    assert recipe.auxiliaries == ()
    assert len(recipe.evidence["notes"]) == 5  # one for each candidate, and that N is more than there are
    assert recipe.evidence["notes"][-1] == "10,000 rows were asked for, 0 can be taken: all of them are"
    assert recipe.evidence["threshold"] is None


def test_more_rows_than_there_are_and_tasks_that_are_too_small():
    recipe = run(get_method("similarity"), {**SMALL, "rows": 640, "count": 5000}, likeness_learner)
    notes = " / ".join(recipe.evidence["notes"])
    assert "the primary 'primary' has 320 train rows, fewer than 640: losses are balanced" in notes
    assert "'close' has 640 train rows, all of them set aside" in notes
    assert "'far' has 480 train rows, all of them set aside" in notes
    assert "5,000 rows were asked for, 480 can be taken: all of them are" in notes
    assert recipe.evidence["taken"] == {"harmful": 160, "near": 320}
    nothing = run(get_method("similarity"), {**SMALL, "rows": 5000}, likeness_learner)
    assert nothing.auxiliaries == ()
    assert nothing.cost.batches == 0  # there was nothing to rank, so nothing was trained


def test_bad_settings_are_refused_in_words():
    with pytest.raises(SettingsError, match=r"one of count, share and ladder, not by count and ladder"):
        make_method("similarity", {"count": 5, "ladder": True})
    with pytest.raises(SettingsError, match=r"rows: .*greater than or equal to 1; found 0"):
        make_method("similarity", {"rows": 0})
    pool = Pool("primary", likeness_learner((), 0).pool().cards, goal="average")
    with pytest.raises(SettingsError, match="goal is 'average'"):
        make_method("similarity").start(pool, np.random.default_rng(0))


def test_settings_survive_a_round_trip():
    settings = make_method("similarity", {"share": 0.5}).settings
    assert type(settings)(**settings.model_dump()) == settings


def test_top_positions_equal_a_full_sort():
    rng = np.random.default_rng(0)
    for n in (0, 1, 7, 50):
        for _ in range(20):
            scores = rng.integers(0, 6, n).astype(np.float32)
            scores[rng.random(n) < 0.2] = np.nan
            for count in (0, 1, 3, n, n + 5):
                known = [i for i in range(n) if not np.isnan(scores[i])]
                slow = sorted(known, key=lambda i: (-scores[i], i))[:count]
                assert top_positions(scores, count).tolist() == slow


def test_a_random_order_covers_all_rows_once_and_ids_survive_packing():
    task, place = random_order([3, 0, 4], 7, np.random.default_rng(0))
    assert sorted(zip(task.tolist(), place.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (0, 2),
        *[(2, i) for i in range(4)],
    ]
    ids = np.array([2**40, 0, -3])
    assert unpack(pack(ids), np.int64).tolist() == ids.tolist()


def test_the_journal_says_how_fast_and_how_long():
    method = make_method("similarity", {"rows": 100})
    state = method.start(likeness_learner(("close", "near"), 0).pool(), np.random.default_rng(0))
    state = state.model_copy(update={"trained": {"accuracy": 0.5}, "chunks": 1, "ranked": 400, "seconds": 2.0})
    assert method.journal(state) == {"ranked": 400, "rows_per_second": 200, "minutes_left": round(1000 / 200 / 60, 2)}


def test_the_example_in_the_docs_runs(capsys):
    page = (ROOT / "docs" / "methods" / "similarity.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(example, "similarity.md", "exec"), {})
    assert capsys.readouterr().out.startswith("{'arm-1': ")
