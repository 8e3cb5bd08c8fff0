"""What `auto` says: the evidence of each round, and the verdict in a sentence."""

from __future__ import annotations

from typing import Any

from sidequest.formatting import fixed, signed
from sidequest.methods.auto.decision import Gain
from sidequest.methods.auto.rounds import AutoState, Round, gains_so_far


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
        for arm in one.arms
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


def verdict(state: AutoState) -> str:
    if not state.candidates:
        return "there are no candidates"
    complete = [one for one in state.rounds if one.complete]
    if not complete:
        return "stopped before anything could be said: the primary alone"
    if state.choice is None:
        if complete[-1].stage == "guard":
            return (
                "no auxiliary helps: what looked good in short runs does not hold at length against the primary alone, "
                "as long or longer, shuffled targets and the read-out of the features"
            )
        gains = gains_so_far(state)
        best = max(gains, key=lambda name: gains[name].z)
        return (
            f"no auxiliary helps: none stands out from the primary alone (the best, {best}: {_shown(gains[best])} in the "
            "log-likelihood of the truth)"
        )
    names = list(state.choice.tasks)
    together = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    how = state.choice.name.removeprefix(" + ".join(names))
    gains = gains_so_far(state)
    each = ", ".join(_shown(gains[name]) for name in names if name in gains)
    return f"train with {together}{how}: {each} in the log-likelihood of the truth, over the primary alone"


def _shown(gain: Gain) -> str:
    if round(gain.mean, 3) == 0:
        return "no measurable difference"
    return f"{signed(gain.mean, 3)} ± {fixed(gain.error, 3)}"
