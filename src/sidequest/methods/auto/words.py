"""What `auto` says: the evidence of each round, and the verdict in a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sidequest.formatting import fixed, signed
from sidequest.methods.auto.arms import Arm
from sidequest.methods.auto.decision import Gain
from sidequest.methods.auto.rounds import AutoState, Round, gains_so_far
from sidequest.methods.auto.stages import above, rivals_of


def evidence(one: Round) -> dict[str, Any]:
    gains = one.gains()
    arms = [
        {
            "arm": arm.name,
            "kind": arm.kind,
            "tasks": list(arm.tasks),
            "truth": float(one.rows(arm).mean()),
            "gain": gains[arm.name].mean,
            "error": gains[arm.name].error if arm.kind != "single" else 0.0,
        }
        for arm in one.seen
    ]
    return {"stage": one.stage, "length": one.length, "seeds": one.seeds, "hold_out": one.hold_out, "arms": arms}


def evidence_of_rows(state: AutoState) -> dict[str, Any]:
    """Nothing where rows were not in question."""
    if state.no_rows:
        return {"rows": {"left_out": f"which rows: not looked at; {state.no_rows}"}}
    if not state.ranked or state.ranking is None:
        return {}
    learned = {key: value for key, value in (state.ranking.trained or {}).items() if key != "empty"}
    return {"rows": {"ranked": {name: state.sizes[name] for name in state.ranked}, "discriminator": learned}}


def verdict(state: AutoState, least: float) -> str:
    """least: by how many standard errors the guard asked the choice to stand above the others."""
    if not state.candidates:
        return "there are no candidates"
    gains = gains_so_far(state)
    if not gains:
        if state.finished:
            return f"train with {state.primary} alone: the budget is too small to look at {len(state.candidates)} candidates"
        return f"stopped before anything could be said of the candidates: train with {state.primary} alone"
    last = next(one for one in reversed(state.rounds) if one.complete or one.stage in ("probe", "confirm"))
    if state.choice is not None:
        names = state.choice.tasks
        how = state.choice.name.removeprefix(" + ".join(names))
        each = ", ".join(f"{name} {_likelier(gains[name])}" for name in names if name in gains)
        beside = "it" if len(names) == 1 else "each"
        said = (
            f"train with {_listed(names)}{how}: in short runs beside {beside} the right answers were more likely than with "
            f"{state.primary} alone ({each})"
        )
        if last.stage != "guard":
            ever = "not yet held" if state.rounds[-1].stage == "guard" or not state.finished else "not held"
            how_far = "" if ever == "not yet held" else ", as it is from effort 3 on"
            return f"{said}; {ever} against {state.primary} alone in long runs{how_far}{_misled(state)}"
        rest = f"; the budget had no room to hold {_listed(state.left_out)} to that, too" if state.left_out else ""
        rivals = _listed([_rival(arm) for arm in rivals_of(last, state.choice)])
        return f"{said}; {_at(last)} this holds against {rivals}{rest}"
    alone = f"no auxiliary helps: train with {state.primary} alone"
    if last.stage == "guard":
        choice = last.arms[0]
        hardest = min(rivals_of(last, choice), key=lambda arm: above(last, choice, arm))
        told = (
            "is as good" if above(last, choice, hardest) <= 0 or not least else "is not worse by more than runs differ"
        )
        return f"{alone}; {_listed(choice.tasks)} looked good in short runs, but {_at(last)} {_rival(hardest)} {told}"
    best_of = max(gains, key=lambda name: gains[name].z)
    return (
        f"{alone}; in short runs beside {_tried(state)} the right answers were not more likely by "
        f"more than runs differ anyway (the best, {best_of}: {_likelier(gains[best_of])})"
    )


def _misled(state: AutoState) -> str:
    """What speaks against short runs of this model."""
    return ". With a fine-tuned model that is no proof: in short runs whatever adds steps looks good" * state.fine_tunes


def _rival(arm: Arm) -> str:
    if arm.kind == "permuted":
        return f"{arm.tasks[0]} with shuffled targets"
    return {"longer": f"the primary alone trained {1 + arm.beside} times as long", "read-out": "the read-out"}.get(
        arm.kind, arm.name
    )


def _at(guard: Round) -> str:
    return "at full length" if guard.length > 0.995 else f"at {fixed(guard.length, 2)} of the full length"


def _tried(state: AutoState) -> str:
    tried, there = len(state.rounds[0].seen) - 1, len(state.candidates)
    if there == 1:
        return "the one candidate"
    return (
        f"each of {there} candidates"
        if tried == there
        else f"each of the {tried} of {there} candidates that were tried"
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _likelier(gain: Gain) -> str:
    """A gain in the log-likelihood of the truth is a factor on its likelihood: 0.1 is a tenth more."""
    if round(gain.mean, 3) == 0:
        return "no measurable difference"
    more, error = 100 * math.expm1(gain.mean), 100 * math.exp(gain.mean) * gain.error
    digits = 0 if error >= 1 else 1
    return f"{signed(more, digits)}% ± {fixed(error, digits)}%"
