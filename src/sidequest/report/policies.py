"""Figures of task-selection policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from sidequest.records.evidence import PolicyOverTime, TriedPolicies
from sidequest.report.style import PALETTE, add_band, new_figure


def scores_over_time(curves: Mapping[str, Mapping[str, Sequence[float]]], title: str, y: str) -> go.Figure:
    """The median over seeds as a line and the full range as a band, for each policy (paper, Figures 1 and 2).

    curves: by policy, equally long `step`, `median`, `low` and `high`.
    """
    figure = new_figure(title, "step", y)
    for colour, (name, curve) in zip(_colours(len(curves)), curves.items(), strict=True):
        add_band(figure, curve["step"], curve["low"], curve["high"], colour)
        figure.add_scatter(x=curve["step"], y=curve["median"], name=name, line={"color": colour})
    return figure


def policy_over_time(evidence: PolicyOverTime) -> go.Figure:
    """The policy of `exp3s` while it learned, from its recipe's evidence; the dotted line is the uniform policy."""
    curve = evidence.policy_over_time
    figure = new_figure("Exp3.S: policy over time", "step", "probability of drawing the task")
    for colour, (name, shares) in zip(_colours(len(curve.policy)), curve.policy.items(), strict=True):
        figure.add_scatter(x=curve.step, y=shares, name=name, line={"color": colour})
    figure.add_hline(y=1 / len(curve.policy), line={"dash": "dot", "color": "#7F7F7F"})
    return figure


def candidate_scores(evidence: TriedPolicies) -> go.Figure:
    """The score on *select* of each policy that `counterfactual` tried, by λ, from its recipe's evidence."""
    figure = new_figure("Counterfactual: policies tried", "entropy weight λ", "score on select")
    tried = [
        (each.iteration, each.entropy_weight, each.score) for each in evidence.candidates if each.score is not None
    ]
    for iteration in sorted({iteration for iteration, _, _ in tried}):
        scores = sorted((weight, score) for number, weight, score in tried if number == iteration)
        figure.add_scatter(
            x=[weight for weight, _ in scores],
            y=[score for _, score in scores],
            mode="lines+markers",
            name=f"improvement {iteration}",
        )
    figure.update_xaxes(type="log")
    return figure


def policy_against_sizes(policy: Mapping[str, float], sizes: Mapping[str, int]) -> go.Figure:
    """A learned policy beside the policy that follows dataset sizes (paper, Table 3), largest dataset first."""
    names = sorted(policy, key=lambda name: (-sizes[name], name))
    total = sum(sizes[name] for name in names)
    figure = new_figure("Learned policy and dataset sizes", "", "probability of drawing the task")
    figure.add_bar(x=names, y=[policy[name] for name in names], name="learned", marker_color=PALETTE[0])
    figure.add_bar(x=names, y=[sizes[name] / total for name in names], name="by size", marker_color=PALETTE[1])
    figure.add_hline(y=1 / len(names), line={"dash": "dot", "color": "#7F7F7F"})
    figure.update_layout(barmode="group")
    return figure


def _colours(count: int) -> list[str]:
    return [PALETTE[index % len(PALETTE)] for index in range(count)]
