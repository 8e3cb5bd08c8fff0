"""The evidence figures of a recipe: one list of what can be drawn, found by what the evidence holds, not by a method's name.

What our methods leave is typed in `records/evidence.py`; each source here looks for kinds of it. A method of your own gets its
figures by leaving the kinds of `sidequest.evidence` in `evidence["figures"]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import plotly.graph_objects as go

from sidequest.errors import SidequestError
from sidequest.evidence import Additions
from sidequest.recipe import Recipe
from sidequest.records import evidence as kinds
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
        except Exception as error:  # evidence is what any method, ours or another's, chose to write
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
    kind = "" if isinstance(error, SidequestError) else f"{type(error).__name__}: "
    return f"This figure could not be drawn: {kind}{error}"


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
    if "figures" in recipe.evidence:
        return
    if (ranked := kinds.ScoredRanking.find(recipe.evidence)) is not None:
        shown = Additions(steps=ranked.ranking, scores=ranked.select_scores)
    elif (tried := kinds.GreedyTrials.find(recipe.evidence)) is not None:
        shown = Additions(steps=tried.trials[-1].tasks, scores=tuple(trial.select for trial in tried.trials))
    else:
        return
    yield Sketch("added", shown.caption, partial(draw_kind, shown, recipe.primary))


def _rounds(recipe: Recipe) -> Iterator[Sketch]:
    rounds = [one for one in recipe.evidence.get("rounds", []) if isinstance(one, dict)]
    for number, one in enumerate(map(kinds.AutoRound.find, rounds), start=1):
        if one is not None:
            also = f" and {one.hold_out} rows held out of train" if one.hold_out else ""
            caption = (
                f"Each dot is a run of {one.length:.2f} of the primary's full length: how many times as likely the right answers "
                f"on select{also} were as with the primary alone. Bars are one standard error. "
                "What does not lie right of the dotted line is no better than the best control."
                + (" Chosen is what stands out over all rounds of single candidates." if one.stage == "probe" else "")
            )
            yield Sketch(f"{number}-{one.stage}", caption, partial(auto.probes, one, recipe.auxiliaries))


def _bandit(recipe: Recipe) -> Iterator[Sketch]:
    stage1 = kinds.BanditStage.find(recipe.evidence.get("stage1") or {})
    if stage1 is None:
        return
    caption = (
        "What the bandit believes about each task: how often training on it keeps or raises the primary's score. "
        "The bar below a curve is its interval."
    )
    yield Sketch("utilities", caption, partial(autosem.utility_densities, stage1))
    caption = "The expected utility that arms were drawn from."
    yield Sketch("utility-over-rounds", caption, partial(autosem.utility_over_rounds, stage1))
    yield Sketch("pulls", "How often each task had been drawn.", partial(autosem.pulls_over_rounds, stage1))


def _mixtures(recipe: Recipe) -> Iterator[Sketch]:
    stage2 = kinds.MixtureStage.find(recipe.evidence.get("stage2") or {})
    if stage2 is None:
        return
    caption = "The highest score on select up to each training run of the search."
    best = {recipe.method: [autosem.running_best(stage2)]}
    yield Sketch("best-so-far", caption, partial(autosem.best_so_far, best))
    if stage2.process is None or not stage2.tasks:
        return
    if len(stage2.tasks) > 1:
        caption = (
            "The Gaussian process over the two ratios that matter most. Numbers are trials, the star is the choice."
        )
        yield Sketch("surface", caption, partial(autosem.mixture_surface, stage2, stage2.process))
    caption = "The same process along one ratio at a time, with a band of two standard deviations; points are trials."
    yield Sketch("slices", caption, partial(autosem.mixture_slices, stage2, stage2.process))


def _policies(recipe: Recipe) -> Iterator[Sketch]:
    if (course := kinds.PolicyOverTime.find(recipe.evidence)) is not None:
        caption = "How often the bandit drew each task as it learned; dotted: uniform."
        yield Sketch("policy-over-time", caption, partial(policies.policy_over_time, course))
    if (tried := kinds.TriedPolicies.find(recipe.evidence)) is not None:
        caption = "Each policy learned from the log was tried in a training run of its own."
        yield Sketch("policies-tried", caption, partial(policies.candidate_scores, tried))
    learned, mean = kinds.LearnedPolicy.find(recipe.evidence), kinds.MeanPolicy.find(recipe.evidence)
    policy = learned.policy if learned is not None else mean.mean_policy if mean is not None else {}
    rows = recipe.provenance.get("rows", {})
    if policy and all("train" in rows.get(name, {}) for name in policy):
        sizes = {name: rows[name]["train"] for name in policy}
        caption = "The learned policy beside the one that follows the sizes of the datasets; dotted: uniform."
        yield Sketch("policy", caption, partial(policies.policy_against_sizes, policy, sizes))


def _weights(recipe: Recipe) -> Iterator[Sketch]:
    course = kinds.WeightCourse.find(recipe.evidence)
    if course is None:
        return
    if course.epochs[0].alphas:
        caption = (
            "The factor on each task's own update that lowers the primary's loss most; 1 leaves the update as it was."
        )
        yield Sketch("alphas", caption, partial(alphavil.alphas_over_training, course))
    caption = "Each task's share of the weight; the dotted line is the epoch whose model was kept."
    yield Sketch("weights", caption, partial(alphavil.weights_over_training, course))


def _head_similarity(recipe: Recipe) -> Iterator[Sketch]:
    if (between := kinds.HeadSimilarity.find(recipe.evidence)) is None:
        return
    caption = "How similarly two tasks rank the attention heads: 1 is the same order, −1 the opposite."
    yield Sketch("tau", caption, partial(gradts.tau_between_tasks, between))
    if recipe.auxiliaries:
        caption = "The share of each candidate's rows that the recipe trains with."
        yield Sketch("selected-rows", caption, partial(gradts.selection_map, [recipe]))


def _row_taus(recipe: Recipe) -> Iterator[Sketch]:
    if (taus := kinds.RowTaus.find(recipe.evidence)) is not None:
        caption = "How well single rows' heads agree with the primary's; rows right of the dotted line are kept."
        yield Sketch("row-taus", caption, partial(gradts.row_taus, taus))


def _heads(recipe: Recipe) -> Iterator[Sketch]:
    if (importances := kinds.HeadImportances.find(recipe.evidence)) is None:
        return
    for name in importances.heads:
        caption = "Which attention heads the task needs, scaled to 0 to 1; darker is more."
        yield Sketch(f"heads-{name}", caption, partial(gradts.head_importance, importances, name))


def _row_ladder(recipe: Recipe) -> Iterator[Sketch]:
    if (ladder := kinds.RowLadder.find(recipe.evidence)) is not None:
        curve = {recipe.method: {trial.rows: [trial.select] for trial in ladder.trials}}
        caption = "The score on select for each number of auxiliary rows; the best number is taken."
        yield Sketch("rows", caption, partial(similarity.score_against_rows, curve, {}, "score on select"))


def _rows_taken(recipe: Recipe) -> Iterator[Sketch]:
    if kinds.RowsTaken.find(recipe.evidence) is not None:
        caption = "Of each auxiliary's rows that could be taken, the share that was."
        yield Sketch("rows-taken", caption, partial(similarity.share_per_auxiliary, {recipe.method: recipe}))


def _ranking(recipe: Recipe) -> Iterator[Sketch]:
    ranking = kinds.RowRankings.find(recipe.evidence)
    if ranking is not None and ranking.bins:
        caption = "How similar the rows of each task look to the primary's, to the discriminator; dotted: the lowest score taken."
        yield Sketch("likeness", caption, partial(similarity.score_spread, ranking))


def _features(recipe: Recipe) -> Iterator[Sketch]:
    found = kinds.RowFeatures.find(recipe.evidence)
    if found is not None and sum(map(len, found.features.values())) >= FEWEST_POINTS:
        caption = "Rows of each task by the discriminator's features, in two dimensions: near means similar."
        yield Sketch("features", caption, partial(_feature_map, found, recipe.primary))


def _feature_map(evidence: kinds.RowFeatures, primary: str) -> go.Figure:
    places = flat_map({name: np.asarray(rows) for name, rows in evidence.features.items()})
    return similarity.feature_map(places, primary, f"Pooled output of rows: {projection()}")


SOURCES: tuple[Source, ...] = (
    _mixture,
    _typed,
    _rounds,
    _greedy,
    _bandit,
    _mixtures,
    _policies,
    _weights,
    _head_similarity,
    _row_taus,
    _heads,
    _row_ladder,
    _rows_taken,
    _ranking,
    _features,
)


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
