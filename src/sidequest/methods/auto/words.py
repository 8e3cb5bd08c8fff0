"""What `auto` says: the evidence of each round, and the verdict in a sentence."""

from __future__ import annotations

from typing import Any

from sidequest.formatting import fixed, signed
from sidequest.methods.auto.rounds import AutoState, Round, spread_before


def evidence(state: AutoState, one: Round) -> dict[str, Any]:
    judged = one.judged(spread_before(state, one))
    arms = [
        {
            "arm": arm.name,
            "kind": arm.kind,
            "tasks": list(arm.tasks),
            "truth": float(one.rows(arm).mean()),
            "gain": judged[arm.name].gain,
            "error": judged[arm.name].error,
        }
        for arm in one.arms
    ]
    return {"stage": one.stage, "length": one.length, "seeds": one.seeds, "arms": arms}


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
                "as long or longer, and the read-out of the features"
            )
        return "no auxiliary helps: none stands out from the primary alone and from training beside shuffled targets"
    names = list(state.choice.tasks)
    together = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    how = state.choice.name.removeprefix(" + ".join(names))
    last = complete[-1]
    if state.choice.name not in last.truth:
        return f"train with {together}{how}"
    gain = last.judged(spread_before(state, last))[state.choice.name]
    return (
        f"train with {together}{how}: {signed(gain.gain, 4)} ± {fixed(gain.error, 4)} in the probability of the truth "
        "on select, over the primary alone and shuffled targets"
    )
