"""The evidence figures of a recipe: one list of what can be drawn, found by what the evidence holds, not by a method's name.

A method of your own gets its figures by leaving the kinds of `sidequest.evidence` in `evidence["figures"]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go

from sidequest.evidence import Additions
from sidequest.recipe import Recipe
from sidequest.report import alphavil, auto, autosem, gradts, policies, similarity
from sidequest.report.flat_map import FEWEST_POINTS, flat_map, projection
from sidequest.report.kinds import draw_kind
from sidequest.report.style import PALETTE, PRIMARY, new_figure


@dataclass(frozen=True)
class Sketch:
    """A figure to be drawn. name: of its file. caption: how to read it, one or two sentences."""

    name: str
    caption: str
    draw: Callable[[], go.Figure]


@dataclass(frozen=True)
class Drawing:
    """A drawn figure; or, where drawing failed, a note that says why."""

    name: str
    caption: str
    figure: go.Figure | None
    note: str = ""

    @property
    def title(self) -> str:
        return "" if self.figure is None else str(self.figure.layout.title.text or "")


Source = Callable[[Recipe], Iterable[Sketch]]


def evidence_figures(recipe: Recipe) -> list[Drawing]:
    """Everything that the recipe's evidence shows. Evidence that is incomplete gives a note instead of a figure."""
    out = []
    for source in SOURCES:
        try:
            sketches = list(source(recipe))
        except (
            Exception
        ) as error:  # evidence is what a method chose to write, perhaps a stranger's: no shape is certain
            out.append(Drawing(source.__name__.strip("_"), "", None, _because(error)))
            continue
        out += [draw(sketch) for sketch in sketches]
    return out


def draw(sketch: Sketch) -> Drawing:
    """The figure, or a note: a page never fails for a figure."""
    try:
        return Drawing(sketch.name, sketch.caption, sketch.draw())
    except Exception as error:  # as above
        return Drawing(sketch.name, sketch.caption, None, _because(error))


def _because(error: Exception) -> str:
    return f"This figure could not be drawn: {type(error).__name__}: {error}"


def _mixture(recipe: Recipe) -> Iterator[Sketch]:
    if recipe.auxiliaries:
        caption = "Batches of each task in each phase of the recipe. A weight other than 1 stands beside the bar."
        yield Sketch("mixture", caption, partial(mixture_shares, recipe))


def _typed(recipe: Recipe) -> Iterator[Sketch]:
    """What the method left as one of the kinds of `sidequest.evidence`."""
    for number, shown in enumerate(recipe.figures, start=1):
        yield Sketch(f"{shown.kind}-{number}", shown.caption, partial(draw_kind, shown, recipe.primary))


def _greedy(recipe: Recipe) -> Iterator[Sketch]:
    """Of recipes of 0.1; newer ones leave `Additions`."""
    evidence = recipe.evidence
    if "figures" in evidence:
        return
    if evidence.get("select_scores") and "ranking" in evidence:
        steps, scores = evidence["ranking"], evidence["select_scores"]
    elif evidence.get("trials") and "tau" in evidence:
        scores = [trial["select"] for trial in evidence["trials"]]
        steps = evidence["trials"][-1]["tasks"]
    else:
        return
    shown = Additions(steps=steps, scores=scores)
    yield Sketch("added", shown.caption, partial(draw_kind, shown, recipe.primary))


def _probes(recipe: Recipe) -> Iterator[Sketch]:
    for number, shown in enumerate(recipe.evidence.get("rounds", [])):
        if isinstance(shown, dict) and "arms" in shown:
            also = f" and {shown['hold_out']} rows held out of train" if shown.get("hold_out") else ""
            caption = (
                f"Runs of {shown['length']:.2f} of the primary's length, judged on select{also}; bars are one standard error. "
                "What lies left of the dotted line is not above the primary alone and every other control."
            )
            yield Sketch(f"{number + 1}-{shown['stage']}", caption, partial(auto.probes, shown))


def _autosem(recipe: Recipe) -> Iterator[Sketch]:
    stage1, stage2 = recipe.evidence.get("stage1"), recipe.evidence.get("stage2")
    if stage1:
        caption = (
            "What the bandit believes about each task: how often training on it keeps or raises the primary's score."
        )
        yield Sketch(
            "utilities", caption + " The bar below a curve is its interval.", partial(autosem.utility_densities, stage1)
        )
        yield Sketch(
            "utility-over-rounds",
            "The expected utility that arms were drawn from.",
            partial(autosem.utility_over_rounds, stage1),
        )
        yield Sketch("pulls", "How often each task had been drawn.", partial(autosem.pulls_over_rounds, stage1))
    if stage2 and stage2["trials"]:
        caption = "The highest score on select up to each training run of the search."
        best = {recipe.method: [autosem.running_best(stage2)]}
        yield Sketch("best-so-far", caption, partial(autosem.best_so_far, best))
    if stage2 and "process" in stage2 and stage2["tasks"]:
        if len(stage2["tasks"]) > 1:
            caption = (
                "The Gaussian process over the two ratios that matter most. Numbers are trials, the star is the choice."
            )
            yield Sketch("surface", caption, partial(autosem.mixture_surface, stage2))
        caption = "The same process along one ratio at a time, with a band of two deviations; points are trials."
        yield Sketch("slices", caption, partial(autosem.mixture_slices, stage2))


def _policies(recipe: Recipe) -> Iterator[Sketch]:
    evidence = recipe.evidence
    if "policy_over_time" in evidence:
        caption = "How often the bandit drew each task as it learned; dotted: uniform."
        yield Sketch("policy-over-time", caption, partial(policies.policy_over_time, evidence))
    if evidence.get("candidates") and "entropy_weight" in evidence["candidates"][0]:
        caption = "Each policy learned from the log was tried in a training run of its own."
        yield Sketch("policies-tried", caption, partial(policies.candidate_scores, evidence))
    policy, rows = evidence.get("policy") or evidence.get("mean_policy"), recipe.provenance.get("rows", {})
    if isinstance(policy, dict) and policy and all("train" in rows.get(name, {}) for name in policy):
        sizes = {name: rows[name]["train"] for name in policy}
        caption = "The learned policy beside the one that follows the sizes of the datasets; dotted: uniform."
        yield Sketch("policy", caption, partial(policies.policy_against_sizes, policy, sizes))


def _weights(recipe: Recipe) -> Iterator[Sketch]:
    evidence = recipe.evidence
    epochs = evidence.get("epochs")
    if not epochs or "tasks" not in evidence or "weights" not in epochs[0]:
        return
    if epochs[0].get("alphas"):
        caption = (
            "The factor on each task's own update that lowers the primary's loss most; 1 leaves the update as it was."
        )
        yield Sketch("alphas", caption, partial(alphavil.alphas_over_training, evidence))
    caption = "Each task's share of the weight; the dotted line is the epoch whose model was kept."
    yield Sketch("weights", caption, partial(alphavil.weights_over_training, evidence))


def _heads(recipe: Recipe) -> Iterator[Sketch]:
    evidence = recipe.evidence
    if "tau_between" in evidence:
        caption = "How alike two tasks rank the attention heads: 1 is the same order, −1 the opposite."
        yield Sketch("tau", caption, partial(gradts.tau_between_tasks, evidence))
    if "tau_between" in evidence and recipe.auxiliaries:
        caption = "The share of each candidate's rows that the recipe trains with."
        yield Sketch("selected-rows", caption, partial(gradts.selection_map, [recipe]))
    if evidence.get("instances") and "bins" in evidence:
        caption = "How well single rows' heads agree with the primary's; rows right of the dotted line are kept."
        yield Sketch("row-taus", caption, partial(gradts.row_taus, evidence))
    for name in evidence.get("heads", {}):
        caption = "Which attention heads the task needs, scaled to 0 to 1; darker is more."
        yield Sketch(f"heads-{name}", caption, partial(gradts.head_importance, evidence, name))


def _rows_taken(recipe: Recipe) -> Iterator[Sketch]:
    evidence = recipe.evidence
    ladder = evidence.get("trials") or []
    if ladder and "rows" in ladder[0]:
        curve = {recipe.method: {trial["rows"]: [trial["select"]] for trial in ladder}}
        caption = "The score on select with so many auxiliary rows; the best number is taken."
        yield Sketch("rows", caption, partial(similarity.score_against_rows, curve, {}, "score on select"))
    if evidence.get("pool") and "taken" in evidence:
        caption = "Of each auxiliary's rows that could be taken, the share that was."
        yield Sketch("rows-taken", caption, partial(similarity.share_per_auxiliary, {recipe.method: recipe}))
    if evidence.get("ranked") and "bins" in evidence:
        caption = (
            "How like the primary's the rows of each task look to the discriminator; dotted: the lowest score taken."
        )
        yield Sketch("likeness", caption, partial(similarity.score_spread, evidence))
    if sum(map(len, evidence.get("features", {}).values())) >= FEWEST_POINTS:
        caption = "Rows of each task by the discriminator's features, in two dimensions: near is alike."
        yield Sketch("features", caption, partial(_features, evidence["features"], recipe.primary))


def _features(components: dict[str, Any], primary: str) -> go.Figure:
    places = flat_map({name: np.asarray(rows) for name, rows in components.items()})
    return similarity.feature_map(places, primary, f"Pooled output of rows: {projection()}")


SOURCES: tuple[Source, ...] = (_mixture, _typed, _probes, _greedy, _autosem, _policies, _weights, _heads, _rows_taken)


def mixture_shares(recipe: Recipe) -> go.Figure:
    """Of each phase, every task's share of the batches; the primary in its colour."""
    figure = new_figure("What the recipe trains on", "share of the batches")
    names = [recipe.primary, *sorted(recipe.auxiliaries)][::-1]
    for number, phase in enumerate(recipe.phases, start=1):
        total = sum(phase.shares.values())
        weights = [phase.weights.get(name, 1.0) for name in names]
        figure.add_bar(
            y=names,
            x=[phase.shares.get(name, 0.0) / total for name in names],
            orientation="h",
            name=f"phase {number}",
            text=["" if weight == 1 else f"weight {weight:.3g}" for weight in weights],
            marker={"color": [PRIMARY if name == recipe.primary else PALETTE[number] for name in names]},
            hovertemplate="%{y}: %{x:.1%}<extra></extra>",
            showlegend=len(recipe.phases) > 1,
        )
    figure.update_layout(barmode="group", height=130 + 34 * len(names) * len(recipe.phases))
    figure.update_xaxes(tickformat=".0%", rangemode="tozero")
    figure.update_yaxes(type="category", automargin=True)
    return figure
