"""Figures of AutoSeM, drawn from a recipe's evidence alone: the bandit's posteriors (Figure 3) and course, the process over
mixtures with the points that were tried, and best-so-far curves of searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from sidequest.numerics import beta_bernoulli as bb
from sidequest.numerics.gp import GP, Hyper
from sidequest.numerics.mixtures import MixtureSpace
from sidequest.records.evidence import BanditStage, FittedProcess, MixtureStage
from sidequest.report.style import PALETTE, add_band, new_figure


def _colours(arms: Sequence[str]) -> dict[str, str]:
    """The first arm is the primary and has its colour."""
    return {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(arms)}


def utility_densities(stage1: BanditStage) -> go.Figure:
    """Figure 3: the posterior density of every task's utility; the bar below a curve is its credible interval."""
    figure = new_figure("Utility of each task for the primary", "utility", "density")
    utilities = np.linspace(0, 1, 401)
    curves = {name: bb.density(each.alpha, each.beta, utilities) for name, each in stage1.posterior.items()}
    top = max(float(curve.max()) for curve in curves.values())
    for index, (name, colour) in enumerate(_colours(stage1.arms).items()):
        posterior = stage1.posterior[name]
        figure.add_scatter(x=utilities, y=curves[name], name=name, mode="lines", line={"color": colour})
        below = -0.04 * top * (index + 1)
        figure.add_scatter(
            x=[posterior.low, posterior.mean, posterior.high],
            y=[below] * 3,
            mode="lines+markers",
            line={"color": colour},
            showlegend=False,
        )
    return figure


def utility_over_rounds(stage1: BanditStage) -> go.Figure:
    """The expected utility from which arms were drawn, after each round: the decayed posterior, replayed."""
    priors, arms = stage1.settings, stage1.arms
    alpha, beta = (np.array([priors.primary_prior[part], *[priors.prior[part]] * (len(arms) - 1)]) for part in (0, 1))
    course = [bb.mean(alpha, beta)]
    for arm, reward in zip(stage1.pulled, stage1.rewards, strict=True):
        alpha, beta = bb.update(alpha, beta, arm, reward, gamma=priors.gamma, prior=priors.prior)
        course.append(bb.mean(alpha, beta))
    figure = new_figure("Expected utility over rounds", "round", "expected utility")
    rounds = np.arange(len(course))
    for index, (name, colour) in enumerate(_colours(arms).items()):
        values = [float(means[index]) for means in course]
        figure.add_scatter(x=rounds, y=values, name=name, mode="lines", line={"color": colour})
    return figure


def pulls_over_rounds(stage1: BanditStage) -> go.Figure:
    """How often each task had been drawn after each round."""
    figure = new_figure("Pulls over rounds", "round", "pulls")
    pulled = np.array(stage1.pulled)
    for index, (name, colour) in enumerate(_colours(stage1.arms).items()):
        counts = np.concatenate([[0], np.cumsum(pulled == index)])
        figure.add_scatter(x=np.arange(len(counts)), y=counts, name=name, mode="lines", line={"color": colour})
    return figure


def process_of(stage2: MixtureStage, process: FittedProcess) -> tuple[GP, MixtureSpace]:
    """The fitted process, from its hyper-parameters and the trials: nothing is fitted again."""
    bounds = stage2.settings
    space = MixtureSpace(len(stage2.tasks), bounds.max_primary, bounds.max_auxiliary)
    mixtures = np.array([trial.mixture for trial in stage2.trials])
    scores = np.array([trial.score for trial in stage2.trials])
    scores[~np.isfinite(scores)] = scores[np.isfinite(scores)].min()  # diverged: as the search counted it
    hyper = Hyper(process.signal, process.noise, process.lengths)
    return GP.condition(space.coordinates_of(mixtures), scores, hyper, process.nu), space


def mixture_slices(stage2: MixtureStage, fitted: FittedProcess) -> go.Figure:
    """The process along one auxiliary at a time, the others as in the chosen mixture; with a band of two standard deviations.

    Points are the trials, wherever they lie in the other dimensions.
    """
    process, space = process_of(stage2, fitted)
    points = process.x
    best = points[stage2.best]
    coordinates = np.linspace(0, 1, 101)
    figure = new_figure("Expected score along each auxiliary's ratio", "batches per batch of the primary", "score")
    for index, name in enumerate(stage2.tasks):
        colour = PALETTE[(index + 1) % len(PALETTE)]
        line = np.tile(best, (len(coordinates), 1))
        line[:, index] = coordinates
        mean, deviation = process.predict(line)
        add_band(figure, coordinates, mean - 2 * deviation, mean + 2 * deviation, colour)
        figure.add_scatter(x=coordinates, y=mean, name=name, mode="lines", line={"color": colour})
        scores = [trial.score for trial in stage2.trials]
        figure.add_scatter(
            x=points[:, index],
            y=scores,
            mode="markers",
            marker={"color": colour},
            line={"color": colour},
            showlegend=False,
        )
    places, labels = _ratio_ticks(space)
    figure.update_xaxes(tickvals=places, ticktext=labels)
    return figure


def mixture_surface(stage2: MixtureStage, fitted: FittedProcess) -> go.Figure:
    """The process over the two auxiliaries that matter most (shortest length scales), the others as in the chosen mixture.

    Numbers are trials in their order, the star is the chosen mixture. Needs two auxiliaries at least.
    """
    process, space = process_of(stage2, fitted)
    lengths = np.array(process.hyper.lengths)
    across, up = sorted(np.argsort(lengths, kind="stable")[:2].tolist())
    side = np.linspace(0, 1, 61)
    grid = np.tile(process.x[stage2.best], (len(side) ** 2, 1))
    grid[:, across], grid[:, up] = (part.ravel() for part in np.meshgrid(side, side))
    mean, _ = process.predict(grid)
    names = stage2.tasks
    figure = new_figure(
        "Expected score of mixtures",
        f"{names[across]} per batch of the primary",
        f"{names[up]} per batch of the primary",
    )
    figure.add_contour(
        x=side,
        y=side,
        z=mean.reshape(len(side), len(side)),
        colorscale="Viridis",
        colorbar={"title": "score"},
        ncontours=20,
    )
    points = process.x
    figure.add_scatter(
        x=points[:, across],
        y=points[:, up],
        mode="markers+text",
        text=[str(number) for number in range(1, len(points) + 1)],
        textposition="middle center",
        textfont={"color": "black", "size": 9},
        marker={"color": "white", "size": 17, "line": {"color": "black", "width": 1}},
        showlegend=False,
    )
    best = points[stage2.best]
    figure.add_scatter(
        x=[best[across]],
        y=[best[up]],
        mode="markers",
        marker={"symbol": "star-open", "size": 30, "color": PALETTE[4], "line": {"width": 3}},
        showlegend=False,
    )
    places, labels = _ratio_ticks(space)
    figure.update_xaxes(tickvals=places, ticktext=labels)
    figure.update_yaxes(tickvals=places, ticktext=labels)
    return figure


def best_so_far(searches: Mapping[str, Sequence[Sequence[float]]], what: str = "best score so far") -> go.Figure:
    """Curves of searches over trials, by name: the median over runs, and with several runs the middle half as a band.

    searches: per search a list of runs, each with one value per trial, already the best so far.
    """
    figure = new_figure(f"{what[0].upper()}{what[1:]}", "trial", what)
    for index, (name, runs) in enumerate(searches.items()):
        colour = PALETTE[index % len(PALETTE)]
        longest = max(map(len, runs))  # a search that has tried all there is ends earlier, and its best stays
        values = np.array([[*run, *run[-1:] * (longest - len(run))] for run in map(list, runs)], dtype=float)
        trials = np.arange(1, values.shape[1] + 1)
        if len(values) > 1:
            low, high = np.quantile(values, [0.25, 0.75], axis=0)
            add_band(figure, trials, low, high, colour)
        figure.add_scatter(x=trials, y=np.median(values, axis=0), name=name, mode="lines", line={"color": colour})
    return figure


def running_best(stage2: MixtureStage) -> list[float]:
    """The highest score up to each trial."""
    return np.maximum.accumulate([trial.score for trial in stage2.trials]).tolist()


def _ratio_ticks(space: MixtureSpace) -> tuple[list[float], list[str]]:
    """Round ratios on an axis of the process."""
    ratios = [(0, 1), (1, 20), (1, 10), (1, 5), (1, 2), (1, 1), (2, 1), (5, 1), (10, 1), (20, 1)]
    shown = [
        (over, under) for over, under in ratios if over <= space.max_auxiliary * under and under <= space.max_primary
    ]
    places = space.coordinates_of(np.array([[under, over] for over, under in shown]))[:, 0]
    return places.tolist(), [f"{over}/{under}" if under > 1 else str(over) for over, under in shown]
