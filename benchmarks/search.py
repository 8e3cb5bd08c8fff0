"""Mixing-ratio search on simulated surfaces: regret after 20 trials and seconds per suggestion, side by side.

    python benchmarks/search.py [--seeds 50] [--out FILE.json]

sidequest's GP-Hedge against random search, a grid of equal budget, and scikit-optimize's gp_hedge (what the paper used)
where it is installed. It is not a dependency; to see it here without touching the environment:

    pip install --no-deps --target /tmp/skopt scikit-optimize==0.10.2 pyaml
    PYTHONPATH=/tmp/skopt python benchmarks/search.py

Every row of the table is the median over surfaces. `chosen by process` gives random and grid search sidequest's final
choice (the highest posterior mean among those tried) instead of the highest score, and `highest score` takes it from
sidequest, to tell the search from the choice. `4 at a time` asks for four mixtures before it sees a score.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from sidequest.numerics.gp_hedge import HedgeSearch
from sidequest.numerics.mixture_search import GridSearch, History, MixtureSearch, Observation, RandomSearch
from sidequest.numerics.mixtures import Mixture, MixtureSpace, reduced
from sidequest.simulation.surfaces import KnownSurface, surface

TRIALS = 20
COUNTS = (5, 10, 15, 20)  # numbers of trials after which the choice is looked at: each look costs a fit
SKOPT_HINT = (
    "scikit-optimize is not installed, so its row is missing. To add it without touching this environment:\n"
    "  pip install --no-deps --target /tmp/skopt scikit-optimize==0.10.2 pyaml\n"
    "  PYTHONPATH=/tmp/skopt python benchmarks/search.py"
)

# (regret of the recommendation after `COUNTS` trials, seconds per suggestion, how many trials were repeats)
Found = tuple[list[float], float, int]
Contender = Callable[[KnownSurface, int], Found]


def run_search(
    search: MixtureSearch, target: KnownSurface, judge: type[MixtureSearch] | None = None, at_once: int = 1
) -> Found:
    """One search; a suggestion of the initial design is not counted in the time, as it costs nothing anywhere.

    judge: whose final choice among the trials is taken; None: the search's own.
    """
    chooser = search if judge is None else judge(search.space, TRIALS, search.seed)
    history: History = ()
    seconds = []
    while len(history) < search.budget:
        start = time.perf_counter()
        suggestions = search.suggest(history, at_once)
        if suggestions[0].source not in ("design", "grid", "random"):
            seconds.append((time.perf_counter() - start) / len(suggestions))
        history += tuple(Observation(each.mixture, target.trial(each.mixture)) for each in suggestions)
    assert len({observation.mixture for observation in history}) == len(history)  # none is paid for twice
    # Only now, because a recommendation needs the same fit as the next suggestion, and would make that look free.
    regrets = [target.regret(history[chooser.best(history[:count])].mixture) for count in COUNTS]
    return regrets, float(np.mean(seconds)) if seconds else 0.0, 0


def run_skopt(target: KnownSurface, seed: int) -> Found:
    """scikit-optimize as the paper used it: "most of the default configurations", integer dimensions, ten random points."""
    import warnings

    from skopt import Optimizer
    from skopt.space import Integer

    space = target.space
    dimensions = [Integer(1, space.max_primary), *[Integer(0, space.max_auxiliary)] * space.n_auxiliaries]
    optimizer = Optimizer(dimensions, base_estimator="GP", acq_func="gp_hedge", random_state=seed)
    tried: list[tuple[Mixture, float]] = []
    regrets, seconds = [], []
    for _ in range(TRIALS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns when it asks for a point again
            start = time.perf_counter()
            asked = optimizer.ask()
            mixture = reduced(tuple(int(part) for part in asked))
            score = target.trial(mixture)
            optimizer.tell(asked, -score)  # it minimises, and does its fitting here
        if len(tried) >= 9:
            seconds.append(time.perf_counter() - start)
        tried.append((mixture, score))
        if len(tried) in COUNTS:
            regrets.append(target.regret(max(tried, key=lambda pair: pair[1])[0]))
    return regrets, float(np.mean(seconds)), TRIALS - len({mixture for mixture, _ in tried})


def contenders() -> dict[str, Contender]:
    variants: dict[str, tuple[type[MixtureSearch], type[MixtureSearch] | None, int]] = {
        "sidequest": (HedgeSearch, None, 1),
        "sidequest, highest score": (HedgeSearch, GridSearch, 1),
        "sidequest, 4 at a time": (HedgeSearch, None, 4),
        "random": (RandomSearch, None, 1),
        "random, chosen by process": (RandomSearch, HedgeSearch, 1),
        "grid": (GridSearch, None, 1),
        "grid, chosen by process": (GridSearch, HedgeSearch, 1),
    }

    def contender(cls: type[MixtureSearch], judge: type[MixtureSearch] | None, at_once: int) -> Contender:
        return lambda target, seed: run_search(cls(target.space, TRIALS, seed), target, judge, at_once)

    out = {name: contender(*variant) for name, variant in variants.items()}
    try:
        import skopt  # noqa: F401
    except ImportError:
        print(SKOPT_HINT)
    else:
        out["scikit-optimize"] = run_skopt
    return out


def surfaces(seeds: int, auxiliaries: int) -> Iterator[tuple[int, KnownSurface]]:
    space = MixtureSpace(auxiliaries, max_primary=20, max_auxiliary=5)
    return ((seed, surface(space, seed)) for seed in range(seeds))


def interval_of_median(values: np.ndarray) -> tuple[float, float]:
    """A 95 % interval for a median from order statistics (binomial)."""
    ordered, n = np.sort(values), len(values)
    half = 0.98 * math.sqrt(n)
    return ordered[max(0, math.floor(n / 2 - half))], ordered[min(n - 1, math.ceil(n / 2 + half) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50, help="surfaces per number of tasks (default 50)")
    parser.add_argument("--out", help="write all numbers as JSON")
    options = parser.parse_args()
    results: dict[str, dict[str, list[Found]]] = {}
    for name, contender in contenders().items():
        for auxiliaries in (2, 3, 4):
            found = [contender(target, seed) for seed, target in surfaces(options.seeds, auxiliaries)]
            results.setdefault(name, {})[f"{1 + auxiliaries} tasks"] = found
            print(f"{name}, {1 + auxiliaries} tasks: {100 * np.median([run[0][-1] for run in found]):.2f}", flush=True)
    print(
        f"\nregret after {TRIALS} trials in hundredths of accuracy: median [95 % interval of it], {options.seeds} surfaces each"
    )
    print(f"{'':27s}{'3 tasks':>20s}{'4 tasks':>20s}{'5 tasks':>20s}{'all':>8s}{'ms/suggestion':>15s}{'repeats':>9s}")
    for name, by_tasks in results.items():
        cells = []
        for found in by_tasks.values():
            last = 100 * np.array([regrets[-1] for regrets, _, _ in found])
            low, high = interval_of_median(last)
            cells.append(f"{np.median(last):5.2f} [{low:.2f}, {high:.2f}]")
        every = [run for found in by_tasks.values() for run in found]
        overall = 100 * np.median([regrets[-1] for regrets, _, _ in every])
        seconds, repeats = np.mean([s for _, s, _ in every]), np.mean([r for _, _, r in every])
        shown = f"{1000 * seconds:.0f}" if seconds else "-"
        print(f"{name:27s}" + "".join(f"{cell:>20s}" for cell in cells) + f"{overall:8.2f}{shown:>15s}{repeats:9.1f}")
    ours = np.concatenate([[run[0][-1] for run in found] for found in results["sidequest"].values()])
    for rival in ("random", "grid", "scikit-optimize"):
        if rival in results:
            theirs = np.concatenate([[run[0][-1] for run in found] for found in results[rival].values()])
            better, worse = np.mean(ours < theirs), np.mean(ours > theirs)
            print(f"sidequest is better than {rival} on {better:.0%} of surfaces, worse on {worse:.0%}")
    if "scikit-optimize" in results:
        per_suggestion = [
            np.mean([run[1] for f in results[n].values() for run in f]) for n in ("scikit-optimize", "sidequest")
        ]
        print(f"per suggestion sidequest is {per_suggestion[0] / per_suggestion[1]:.1f} x faster than scikit-optimize")
    if options.out:
        curves = {n: {k: [run[0] for run in found] for k, found in by.items()} for n, by in results.items()}
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"trials": COUNTS, "seeds": options.seeds, "regret": curves}, file)


if __name__ == "__main__":
    main()
