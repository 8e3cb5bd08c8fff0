"""The experiment's machinery on a tiny suite: tables, reuse and figures; and its plans name what exists."""

import json
import mmap
from pathlib import Path

import pytest

from experiments import EXPERIMENTS, Options
from experiments import gradts as experiment
from experiments.gradts_suites import (
    FOLDERS,
    GRADTS,
    GradTSPlan,
    TaskSet,
    full_plan,
    has_learned,
    load_tasks,
    small_plan,
    with_all_rows,
)
from sidequest.methods import METHODS
from sidequest.model_settings import HfSettings
from sidequest.recipe import Phase, Recipe, Subset
from sidequest.runs.peak_memory import PeakMemory
from sidequest.runs.selecting import make_method
from sidequest.settings import TrainSettings
from sidequest.tasks.catalog import entry_name
from sidequest.tasks.majority import majority_score
from sidequest.tasks.task import Form, Objective
from tests.helpers.tiny_suites import task


@pytest.mark.parametrize("plan", [full_plan(None), small_plan(None)], ids=["full", "small"])
def test_plans_name_what_exists(plan):
    for part in plan.parts:
        assert set(part.primaries) <= set(part.tasks) <= set(FOLDERS)
        for name in part.tasks:
            entry_name(name)
        for method in part.methods:
            assert method in METHODS
            make_method(method, dict(plan.settings.get(method, {})))
    assert "gradts" in EXPERIMENTS


@pytest.mark.integration
def test_the_small_suite_is_read_alike_in_every_role(shared_data):
    tasks = load_tasks(small_plan(None), shared_data)
    assert {len(each.train) for each in tasks.values()} == {180}
    assert {len(each.splits["select"]) for each in tasks.values()} == {60}


@pytest.mark.slow
@pytest.mark.integration
def test_every_table_and_figure_on_a_tiny_suite(encoder, tmp_path, capsys):
    """Two parts; the second adds a task, and only that one is computed."""
    names = ("first", "second", "words")
    tasks = {name: task(name, rows=24) for name in names[:2]}
    tasks["words"] = task("words", Form.TOKENS, Objective.TAGGING, rows=24)
    methods = ("single", "all", "random-subset", *GRADTS)
    parts = (
        TaskSet("one", "Table 2", names[:2], names[:2], methods, 1),
        TaskSet("two", "Table 4", names, ("first",), methods, 1),
    )
    ranking = {"warmup_epochs": 1}
    plan = GradTSPlan(
        parts,
        HfSettings(encoder=str(encoder)),
        TrainSettings(epochs=1, batch_size=8, learning_rate=1e-3),
        None,
        None,
        {name: ranking | ({} if name == "gradts-trial" else {"quantile": 0.5}) for name in GRADTS},
    )
    options = Options(tmp_path)
    shown = {}
    for part in plan.parts:
        found = experiment.run_part(plan, part, tasks, options)
        shown[part.name] = experiment.show_part(plan, part, tasks, found, tmp_path / part.name)
    json.dumps(shown)
    printed = capsys.readouterr().out
    assert "x to choose" in printed

    def reuse(part, primary, method):
        return next(e["reuse"] for e in shown[part]["measured"][primary] if e["method"] == method)

    assert reuse("one", "first", "gradts-thres")["computed"] == ["first", "second"]
    assert reuse("one", "second", "gradts-thres") == {
        "computed": [],
        "reused": ["second", "first"],
        "trials": 0,
        "trials_reused": 0,
    }
    added = reuse("two", "first", "gradts-trial")
    assert (added["computed"], added["reused"]) == ([], ["first", "second", "words"])  # gradts-thres has computed it
    assert reuse("two", "first", "gradts-thres")["computed"] == ["words"]
    fg = reuse("two", "first", "gradts-fg")
    assert fg["trials_reused"] == fg["trials"] > 0  # gradts-trial has run them
    recipe = Recipe.read(tmp_path / "two" / "first" / "gradts-fg" / "seed-0" / "recipe.json")
    assert "reused" not in json.dumps(recipe.evidence)
    for name in ("heads-first", "tau", "selection-gradts-fg"):
        assert (tmp_path / "two" / f"{name}.html").exists()


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
    constant = majority_score(task("first", rows=24))
    assert has_learned(task("first", rows=24), [constant + 0.04])
    assert not has_learned(task("first", rows=24), [constant + 0.1, constant - 0.1])


def test_parts_and_primaries_can_be_asked_for():
    plan = small_plan(None)
    some = experiment.chosen_parts(
        plan, Options(Path("out"), encoder="bert", primaries=("rte",), only=("glue", "mixed"))
    )
    assert [(part.name, part.primaries) for part in some.parts] == [("glue", ("rte",))]  # mixed has no such primary
    assert some.model.encoder == "bert"
    assert experiment.chosen_parts(plan, Options(Path("out"))) == plan


def test_peak_memory_sees_what_was_held():
    with PeakMemory() as memory:
        held = mmap.mmap(-1, 64 << 20)  # new pages: an allocator could give memory that the process holds already
        for page in range(0, len(held), 4096):
            held[page] = 1
        held.close()
    if memory.above is None:
        pytest.skip("the system has no /proc")
    assert memory.above > 50 << 20
