"""The three settings of GradTS: what they choose, when they stop, what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

from sidequest.errors import SettingsError, SidequestError
from sidequest.learning.protocol import HeadImportance, Warmup
from sidequest.methods.gradts.gradts import FgSettings, GradTSFg, GradTSThres, GradTSTrial, ThresSettings, TrialSettings
from sidequest.methods.gradts.head_ranking import scale_importance
from tests.helpers.known_heads import MATRICES, REFERENCE, Heads, go, only_same, pool, rank


def test_scaling_is_step_four():
    raw = np.array([[3.0, 4.0], [0.0, 10.0], [1.0, 1.0]])
    layers = np.array([[0.6, 0.8], [0.0, 1.0], [2**-0.5, 2**-0.5]])
    np.testing.assert_allclose(scale_importance(raw, "l2"), layers)  # its least is 0 and its greatest 1 already
    np.testing.assert_allclose(scale_importance(raw, "sum"), [[3 / 7, 4 / 7], [0, 1], [0.5, 0.5]])
    stretched = scale_importance(np.array([[3.0, 4.0], [6.0, 8.0]]), "l2")
    np.testing.assert_allclose(stretched, [[0, 1], [0, 1]], atol=1e-12)


def test_scaling_rows_at_once_equals_one_by_one():
    rows = np.random.default_rng(0).random((5, 3, 4))
    np.testing.assert_array_equal(scale_importance(rows, "l2"), [scale_importance(row, "l2") for row in rows])


def test_scaling_what_is_all_alike_gives_zeros():
    assert not scale_importance(np.zeros((2, 3)), "l2").any()
    assert not scale_importance(np.full((2, 3), 5.0), "sum").any()


def test_the_fake_learner_has_the_power():
    assert isinstance(Heads(MATRICES), HeadImportance)


def test_tau_is_scipys_over_scaled_matrices():
    method = GradTSThres(seed=3)
    state, learner = rank(method)
    evidence = method.recipe(state).evidence
    scaled = {name: scale_importance(matrix, "l2").ravel() for name, matrix in MATRICES.items()}
    for name in ("far", "near", "same", "mid"):
        assert evidence["tau"][name] == pytest.approx(kendalltau(scaled[name], scaled["p"]).statistic)
    assert evidence["tau"]["same"] == pytest.approx(1.0)
    assert evidence["ranking"][0] == "same"
    names, between = evidence["tau_between"]["names"], np.array(evidence["tau_between"]["values"])
    assert between[names.index("near"), names.index("mid")] == pytest.approx(
        kendalltau(scaled["near"], scaled["mid"]).statistic
    )
    assert [task for task, _ in learner.asked] == ["p", "far", "mid", "near", "same"]
    assert {warmup for _, warmup in learner.asked} == {Warmup(epochs=3.0, most_batches=None, seed=3)}


def test_thres_takes_all_at_or_above_the_threshold():
    state, _ = rank(GradTSThres())
    taus = GradTSThres().recipe(state).evidence["tau"]
    for threshold in (-1.0, taus["mid"], taus["near"], 1.0):
        recipe = GradTSThres(ThresSettings(threshold=threshold)).recipe(state)
        assert set(recipe.auxiliaries) == {name for name, tau in taus.items() if tau >= threshold}
        assert f"reach τ {threshold:.2f}" in recipe.verdict
    assert GradTSThres().settings.threshold == 0.47


def test_thres_by_quantile():
    state, _ = rank(GradTSThres())
    half = GradTSThres(ThresSettings(quantile=0.5)).recipe(state)
    assert set(half.auxiliaries) == set(half.evidence["ranking"][:2])
    every = GradTSThres(ThresSettings(quantile=0)).recipe(state)
    assert len(every.auxiliaries) == 4


def test_a_task_whose_heads_are_all_alike_is_never_near():
    state, _ = rank(GradTSThres(), {"p": REFERENCE, "flat": np.ones((3, 4))})
    assert GradTSThres().recipe(state).evidence["tau"] == {"flat": -1.0}


def test_trial_adds_along_the_ranking_until_select_falls():
    method = GradTSTrial()
    scores = {0: 0.6, 1: 0.65, 2: 0.7, 3: 0.69, 4: 0.9}
    state, tried = go(method, lambda chosen: scores[len(chosen)])
    ranking = method.recipe(state).evidence["ranking"]
    assert [set(chosen) for chosen in tried] == [
        set(ranking[:size]) for size in range(4)
    ]  # the fourth is never paid for
    recipe = method.recipe(state)
    assert set(recipe.auxiliaries) == set(ranking[:2])
    assert recipe.evidence["trials"][2] == {"tasks": ranking[:2], "select": 0.7}
    assert "raised select from 0.600 to 0.700" in recipe.verdict


def test_trial_may_choose_nobody():
    state, tried = go(GradTSTrial(), lambda chosen: 0.6 - 0.1 * len(chosen))
    recipe = GradTSTrial().recipe(state)
    assert len(tried) == 2
    assert recipe.auxiliaries == ()
    assert recipe.phases[0].shares == {"p": 1}
    assert "no candidate raised select above 0.600" in recipe.verdict


def test_a_tie_goes_on_but_does_not_choose():
    """The first candidate ties with the primary alone, the second helps; then nothing changes any more."""
    state, tried = go(GradTSTrial(), lambda chosen: 0.7 if len(chosen) >= 2 else 0.6)
    assert len(tried) == 5
    assert len(GradTSTrial().recipe(state).auxiliaries) == 2
    state, _ = go(GradTSTrial(), lambda chosen: 0.6)
    assert GradTSTrial().recipe(state).auxiliaries == ()


def test_patience_looks_past_a_fall():
    scores = {0: 0.6, 1: 0.5, 2: 0.7, 3: 0.6, 4: 0.5}
    patient = GradTSTrial(TrialSettings(patience=2))
    state, tried = go(patient, lambda chosen: scores[len(chosen)])
    assert len(tried) == 5
    assert len(patient.recipe(state).auxiliaries) == 2
    state, tried = go(GradTSTrial(), lambda chosen: scores[len(chosen)])
    assert len(tried) == 2


def test_trials_at_once_pay_for_nothing_more():
    def score(chosen):
        return {0: 0.6, 1: 0.65, 2: 0.6}.get(len(chosen), 0.0)

    one, tried_one = go(GradTSTrial(), score)
    many, tried_many = go(GradTSTrial(), score, parallel=4)
    assert one == many
    assert tried_one == tried_many


def test_the_trial_of_the_primary_alone_is_the_single_baselines_plan():
    from sidequest.methods.baselines import Single

    state, _ = rank(GradTSTrial())
    (plan,) = GradTSTrial().ask(state, 1)
    alone = Single()
    assert plan.phases == alone.recipe(alone.start(pool(["p"]), np.random.default_rng(0))).phases


def test_shares_are_rows_up_to_the_cap():
    rows = {"p": 100, "same": 30, "near": 500}
    matrices = {name: MATRICES[name] for name in rows}
    for cap, expected in [(1.0, 1.0), (2.5, 2.5), (None, 5.0)]:
        method = GradTSThres(ThresSettings(threshold=-1, cap=cap))
        state, _ = rank(method, matrices, rows)
        assert method.recipe(state).phases[0].shares == {"p": 1.0, "same": 0.3, "near": expected}
        assert method.recipe(state).phases[0].order == "shuffle"


def test_fg_keeps_the_rows_that_agree_with_the_primary():
    method = GradTSFg()
    state, _ = go(method, only_same)
    recipe = method.recipe(state)
    assert recipe.auxiliaries == ("same",)
    assert recipe.phases[0].subsets["same"].ids.tolist() == [10, 11, 12]
    assert recipe.phases[0].shares == {"p": 1.0, "same": 0.5}  # three rows against six
    shown = recipe.evidence["instances"]["same"]
    assert (shown["rows"], shown["kept"], shown["share"], shown["unranked"]) == (6, 3, 0.5, 0)
    assert sum(shown["histogram"]) == 6
    assert len(recipe.evidence["bins"]) == len(shown["histogram"]) + 1
    assert recipe.evidence["threshold"] == 0.42
    assert "same 3 of 6" in recipe.verdict


def test_fg_by_quantile_over_all_chosen_rows():
    method = GradTSFg(FgSettings(quantile=0.9))
    state, _ = go(method, lambda chosen: {0: 0.6, 1: 0.7, 2: 0.8}.get(len(chosen), 0.5))
    recipe = method.recipe(state)
    # The rows of `same` agree wholly, those of `near` in part: at the 0.9 quantile of all twelve only the former are left.
    assert set(recipe.evidence["instances"]) == {"same", "near"}
    assert recipe.auxiliaries == ("same",)
    assert recipe.evidence["instances"]["near"]["kept"] == 0


def test_fg_without_any_row_left_is_the_primary_alone():
    matrices = {"p": REFERENCE, "near": MATRICES["near"]}
    method = GradTSFg(FgSettings(threshold=1.0))
    state, _ = go(method, only_same, matrices)
    recipe = method.recipe(state)
    assert recipe.tasks == ("p",)
    assert "near 0 of 6" in recipe.verdict


def test_fg_without_chosen_tasks_scores_no_rows():
    state, _ = go(GradTSFg(), lambda chosen: -len(chosen))
    assert state.instances == {}
    assert GradTSFg().recipe(state).tasks == ("p",)


def test_rows_without_an_order_are_counted_and_left_out():
    class Flat(Heads):
        def instance_importance(self, task, warmup):
            yield np.arange(2), np.stack([self.matrices[task], np.zeros((3, 4))]).astype(np.float32)

    method = GradTSFg(FgSettings(threshold=-1.0))
    state, _ = rank(method)
    state = state.model_copy(update={"scores": [0.6, 0.7, 0.5]})
    state = method.round(state, Flat(MATRICES), np.random.default_rng(0))
    assert state.instances["same"].kept == [0]
    assert state.instances["same"].unranked == 1


def test_an_average_goal_is_refused():
    with pytest.raises(SettingsError, match=r"'gradts-thres' ranks candidates for one primary task.*'average'"):
        GradTSThres().start(pool(["p", "q"], goal="average"), np.random.default_rng(0))


def test_without_candidates_the_primary_alone():
    for method in (GradTSThres(), GradTSTrial(), GradTSFg()):
        state, _ = go(method, lambda chosen: 0.5, {"p": REFERENCE})
        assert method.recipe(state).tasks == ("p",)


def test_fg_by_quantile_without_an_order_in_any_row_keeps_none():
    class Flat(Heads):
        def instance_importance(self, task, warmup):
            yield np.arange(2), np.zeros((2, 3, 4), dtype=np.float32)

    method = GradTSFg(FgSettings(quantile=0.5))
    state, _ = rank(method)
    state = state.model_copy(update={"scores": [0.6, 0.7, 0.5]})
    state = method.round(state, Flat(MATRICES), np.random.default_rng(0))
    assert state.instances["same"].kept == []
    assert state.threshold == 0.42


def test_importances_that_are_not_finite_are_an_error_not_a_rank():
    broken = {**MATRICES, "near": MATRICES["near"] * np.nan}
    with pytest.raises(SidequestError, match=r"'near'.* not finite"):
        go(GradTSThres(), only_same, broken)
