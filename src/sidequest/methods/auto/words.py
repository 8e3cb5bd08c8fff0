"""What `auto` says: the evidence of each round, and the verdict in a sentence."""

from __future__ import annotations

from typing import Any

from sidequest.formatting import fixed, signed
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
    return {"stage": one.stage, "trunk": one.trunk, "length": one.length, "seeds": one.seeds, "arms": arms}


def verdict(state: AutoState) -> str:
    if not state.candidates:
        return "there are no candidates"
    complete = [one for one in state.rounds if one.complete and one.truth]
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
        shown = f"{signed(gains[best].mean, 4)} ± {fixed(gains[best].error, 4)}"
        return (
            f"no auxiliary helps: none stands out from the primary alone (the best, {best}: {shown} in the probability of the "
            "truth on select)"
        )
    names = list(state.choice.tasks)
    together = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    how = state.choice.name.removeprefix(" + ".join(names))
    gains = gains_so_far(state)
    each = ", ".join(
        f"{signed(gains[name].mean, 4)} ± {fixed(gains[name].error, 4)}" for name in names if name in gains
    )
    return f"train with {together}{how}: {each} in the probability of the truth on select, over the primary alone"
