"""The experiment's machinery on a tiny suite: tables, reuse and figures; and its plans name what exists."""

import json
import mmap
from pathlib import Path

import pytest

from experiments import EXPERIMENTS, Options, run
from experiments import gradts as experiment
from experiments import gradts_choices as choices
from experiments.claims import has_learned
from experiments.gradts_choices import ROW_THRESHOLDS, THRESHOLDS
from experiments.gradts_suites import (
    FOLDERS,
    GRADTS,
    MISMATCHED,
    TUNED,
    TUNED_FG,
    GradTSPlan,
    TaskSet,
    full_plan,
    load_tasks,
    small_plan,
    with_all_rows,
)
from experiments.rank_test import rank_test
from sidequest.files import read_json
from sidequest.methods import METHODS
from sidequest.model_settings import HfSettings
from sidequest.recipe import Phase, Recipe, Subset
from sidequest.records.controls import CONTROLS, PROBE, SINGLE_LONG
from sidequest.runs.peak_memory import PeakMemory
from sidequest.runs.selecting import make_method
from sidequest.settings import TrainSettings
from sidequest.tasks.catalog import entry_name
from sidequest.tasks.task import Form, Objective
from tests.helpers.tiny_suites import task


@pytest.mark.parametrize("plan", [full_plan(), small_plan()], ids=["full", "small"])
def test_plans_name_what_exists(plan):
    for part in plan.parts:
        assert set(part.primaries) - {MISMATCHED} <= set(part.tasks) <= set(FOLDERS)
        for name in part.tasks:
            entry_name(name)
        for method in (each for each in part.methods if each not in (TUNED, TUNED_FG, *CONTROLS)):
            assert method in METHODS
            make_method(method, dict(plan.settings.get(method, {})))
    assert "gradts" in EXPERIMENTS


@pytest.mark.integration
def test_the_small_suite_is_read_alike_in_every_role(shared_data):
    tasks = load_tasks(small_plan(), shared_data)
    assert {len(each.train) for each in tasks.values()} == {201}
    assert {len(each.splits["select"]) for each in tasks.values()} == {66}


@pytest.mark.slow
@pytest.mark.integration
def test_every_table_and_figure_on_a_tiny_suite(encoder, tmp_path, capsys, monkeypatch):
    """Head matrices are computed once and found by the other methods and primaries."""
    names = ("first", "second", "third", "words")
    tasks = {name: task(name, rows=24) for name in names[:3]}
    tasks["words"] = task("words", Form.TOKENS, Objective.TAGGING, rows=24)
    methods = ("single", PROBE, "all", SINGLE_LONG, *GRADTS, "random-subset", TUNED, TUNED_FG)
    ranking = {"warmup_epochs": 1}
    plan = GradTSPlan(
        (TaskSet("one", "Table 2", names, names[:2], methods, direct=True),),
        HfSettings(encoder=str(encoder)),
        TrainSettings(epochs=1, batch_size=8, learning_rate=1e-3),
        None,
        None,
        1,
        {name: ranking | ({} if name == "gradts-trial" else {"quantile": 0.5}) for name in GRADTS},
    )
    monkeypatch.setattr(experiment, "small_plan", lambda: plan)
    monkeypatch.setattr(experiment, "load_tasks", lambda plan, data: tasks)
    monkeypatch.setattr(experiment, "has_learned", lambda single, constant, probe: True)
    options = Options(tmp_path, small=True, data=tmp_path, results=tmp_path / "results")
    results = run("gradts", options)
    json.dumps(results)
    assert "x to choose" in capsys.readouterr().out
    assert set(results["one"]["direct"]["by_primary"]) == {"first", "second"}

    def kept(primary, method):
        return read_json(tmp_path / "results" / "gradts" / "small" / f"one-{primary}-{method}-0.json")

    assert kept("first", "gradts-thres")["reuse"]["computed"] == list(names)
    assert kept("second", "gradts-thres")["reuse"]["computed"] == []
    fg = kept("first", "gradts-fg")["reuse"]
    assert fg["trials_reused"] == fg["trials"] > 0  # gradts-trial has run them
    tuned, fixed = kept("first", TUNED_FG.replace(" ", "-")), kept("first", "gradts-fg")
    assert tuned["threshold"] in ROW_THRESHOLDS
    # Choosing costs what `gradts-fg` pays, found or computed, and at most a training per threshold.
    trainings = tuned["x"]["choose"] - fixed["x"]["choose"]
    assert tuned["x"]["train"] <= trainings + 1e-3
    for name in ("heads-first", "tau-one", "selection-one-gradts-fg"):
        assert (tmp_path / f"{name}.html").exists()


def result_of(select, x, **more):
    return {"select": select, "report": 0.1, "x": {"choose": 3.0, "train": x}, "auxiliaries": ["a"], **more}


@pytest.fixture
def rows_tuned(monkeypatch, tmp_path):
    """`rows_tuned(share_of, select_of)` → what is found where a threshold keeps some share of the rows, and a share is worth so
    much on *select*; and the settings of every choice that was asked for."""

    def tune(share_of, select_of):
        asked = []

        def chosen_result(setup, method, settings, seed, place):
            asked.append((method, dict(settings), place))
            share = share_of(settings["threshold"])
            return result_of(select_of(share), 1 + share, row_shares={"a": share}, minutes=1.0, peak=5, reuse={})

        monkeypatch.setattr(choices, "chosen_result", chosen_result)
        return choices.tuned_rows(None, {"warmup_epochs": 1, "quantile": 0.5}, 0, tmp_path), asked

    return tune


def test_the_threshold_of_rows_is_the_best_on_select(rows_tuned):
    def share_of(threshold):  # 0, 0, 0.25, 0.5, 0.75, 1, 1 of the rows, from the highest threshold on
        return min(1.0, max(0.0, round(1.25 - 2.5 * threshold, 2)))

    found, asked = rows_tuned(share_of, lambda share: 0.9 - abs(share - 0.5))
    assert (found["threshold"], found["row_shares"]) == (0.3, {"a": 0.5})
    other, _ = rows_tuned(share_of, lambda share: 0.9 - abs(share - 1.0))
    assert (other["threshold"], other["row_shares"]) == (0.1, {"a": 1.0})
    assert {method for method, _, _ in asked} == {"gradts-fg"}
    assert sorted(settings["threshold"] for _, settings, _ in asked) == list(ROW_THRESHOLDS)
    # The quantile of the small size would win over any threshold.
    assert all(settings["quantile"] is None and settings["warmup_epochs"] == 1 for _, settings, _ in asked)
    assert len({place for *_, place in asked}) == len(asked)


def test_choosing_a_threshold_of_rows_costs_a_training_for_each_set_that_differs(rows_tuned):
    found, _ = rows_tuned(lambda threshold: 0.5, lambda share: 0.7)
    assert found["x"] == {"choose": 3.0 + 1.5, "train": 1.5}
    more, _ = rows_tuned(lambda threshold: 1.0 if threshold < 0.25 else 0.5, lambda share: 0.7)
    assert more["x"] == {"choose": 3.0 + 1.5 + 2.0, "train": 1.5}
    assert more["row_shares"] == {"a": 0.5}  # a tie takes fewer rows
    assert not {"minutes", "peak", "reuse"} & {*more}  # of one threshold, not of all


def test_the_threshold_of_tasks_is_the_best_on_select(monkeypatch):
    tau = {"a": 0.6, "b": 0.4, "c": 0.1}
    worth: dict[tuple[str, ...], float] = {}
    monkeypatch.setattr(choices, "together", lambda setup, names: names)
    monkeypatch.setattr(
        choices, "recipe_result", lambda setup, names, seed: result_of(worth[names], len(names), names=names)
    )
    given = {"tau": tau, "x": {"choose": 4.0, "train": 1.0}}
    for best in ((), ("a",), ("a", "b")):
        worth = dict.fromkeys([(), ("a",), ("a", "b")], 0.5) | {best: 0.6}
        found = choices.tuned_tasks(None, given, 0)
        assert found["names"] == best
        # What `gradts-thres` paid for its τ, and a training for none, one and two tasks; no threshold takes all three.
        assert found["x"] == {"choose": 4.0 + 3, "train": len(best)}
    assert min(THRESHOLDS) > tau["c"]


def test_thresholds_are_tuned_at_full_size_alone():
    assert all({TUNED, TUNED_FG} <= {*part.methods} for part in full_plan().parts)
    assert all(not {TUNED, TUNED_FG} & {*part.methods} for part in small_plan().parts)
    jobs = experiment.jobs_of(Options(Path("out"), primaries=("rte",), only=("glue",), seeds=1))
    (job,) = [job for job in jobs if job.method == TUNED_FG]
    assert (job.paper, job.needs) == ("gradts", None)
    assert job.settings["settings"] == {"thresholds": ROW_THRESHOLDS}


def test_candidates_ranked_by_their_gains_are_told_from_chance():
    alike = {f"p{i}": {f"c{j}": (j / 10, j / 7) for j in range(5)} for i in range(2)}
    found = rank_test(alike)
    assert found.mean == pytest.approx(1.0)
    assert found.p_value < 0.01
    turned = rank_test({name: {c: (-tau, gain) for c, (tau, gain) in each.items()} for name, each in alike.items()})
    assert turned.mean == pytest.approx(-1.0)
    assert turned.p_value > 0.9
    assert rank_test({"p": {"a": (0.1, 0.2), "b": (0.3, 0.1)}}) is None


def chosen(method, *phases):
    return Recipe(method=method, primary="p", phases=phases)


ROWS = {"p": 10, "a": 40, "b": 5}


@pytest.mark.parametrize(
    ("recipe", "shares"),
    [
        (chosen("heu-size", Phase(order="cycle", shares={"p": 1, "a": 1, "b": 1})), {"p": 1, "a": 4, "b": 0.5}),
        (chosen("gradts-thres", Phase(order="shuffle", shares={"p": 1, "a": 1})), {"p": 1, "a": 4}),
        (
            chosen("gradts-fg", Phase(shares={"p": 1, "a": 1}, subsets={"a": Subset(ids=[3, 4, 5])})),
            {"p": 1, "a": 0.3},
        ),
        (chosen("single", Phase(shares={"p": 1})), {"p": 1}),
        (chosen("autosem", Phase(order="cycle", shares={"p": 2, "a": 1})), {"p": 2, "a": 1}),
    ],
    ids=lambda value: value.method if isinstance(value, Recipe) else "",
)
def test_every_choice_is_trained_in_one_mixture_of_all_that_was_chosen(recipe, shares):
    made = with_all_rows(recipe, ROWS)
    (phase,) = made.phases
    assert phase.shares == pytest.approx(shares)
    assert phase.subsets == recipe.phases[0].subsets
    assert phase.order == ("shuffle" if set(shares) != {"p"} and recipe.method != "autosem" else recipe.phases[0].order)


def test_no_table_where_the_primary_alone_has_learned_nothing():
    assert has_learned({0: 0.54}, 0.5, {})
    assert not has_learned({0: 0.6, 1: 0.4}, 0.5, {})
    assert has_learned({0: 0.1}, None, {})  # there is no constant answer to tags
    assert has_learned({0: 0.9, 1: 0.8}, 0.5, {0: 0.85, 1: 0.85})
    assert not has_learned({0: 0.9, 1: 0.8}, 0.5, {0: 0.86, 1: 0.85})
    assert has_learned({0: 0.9, 1: 0.2}, 0.5, {0: 0.85})  # seeds that both have


def test_parts_and_primaries_can_be_asked_for():
    plan = experiment.plan_of(Options(Path("out"), encoder="bert", primaries=("rte", "pos"), only=("glue", "mixed")))
    assert [(part.name, part.primaries) for part in plan.parts] == [("glue", ("rte",)), ("mixed", ("rte", "pos"))]
    assert plan.model.encoder == "bert"
    assert experiment.plan_of(Options(Path("out"))) == full_plan()


def test_peak_memory_sees_what_was_held():
    with PeakMemory() as memory:
        held = mmap.mmap(-1, 64 << 20)  # new pages: an allocator could give memory that the process holds already
        for page in range(0, len(held), 4096):
            held[page] = 1
        held.close()
    if memory.above is None:
        pytest.skip("the system has no /proc")
    assert memory.above > 50 << 20
