"""How much faster a policy is judged from per-task sums than by walking the log: `python benchmarks/off_policy.py`.

A log of 200,000 steps over 8 tasks whose policy changed at every step. Exit code 1 if the two differ by more than 1e-12 or the
sums are less than 100 times faster than the walk; for a population of policies at once, as the search asks, also than a
vectorised walk.
"""

from __future__ import annotations

import sys
from timeit import repeat

import numpy as np

from sidequest.numerics.off_policy import LogSums, importance_sampling, weighted_importance_sampling

STEPS, TASKS, POPULATION, ITERATIONS = 200_000, 8, 64, 20
LEAST_SPEEDUP, LARGEST_DIFFERENCE = 100, 1e-12


def main() -> int:
    rng = np.random.default_rng(0)
    policies = 0.9 * rng.dirichlet(np.ones(TASKS), STEPS) + 0.1 / TASKS
    task = (rng.random((STEPS, 1)) > policies.cumsum(1)[:, :-1]).sum(1)
    propensity, reward = policies[np.arange(STEPS), task], rng.random(STEPS)
    target = rng.dirichlet(np.ones(TASKS))
    records = list(zip(task.tolist(), propensity.tolist(), reward.tolist(), strict=True))
    shares = target.tolist()

    def walk() -> tuple[float, float]:
        earned = total = 0.0
        for k, p, r in records:
            weight = shares[k] / p
            earned += weight * r
            total += weight
        return earned / STEPS, earned / total

    def vectorised_walk() -> tuple[float, float]:
        weight = target[task] / propensity
        return float((weight * reward).sum()) / STEPS, float((weight * reward).sum() / weight.sum())

    def from_sums() -> tuple[float, float]:
        return float(importance_sampling(target, sums)), float(weighted_importance_sampling(target, sums))

    def population_from_sums() -> None:
        importance_sampling(population, sums)
        weighted_importance_sampling(population, sums)

    population = rng.dirichlet(np.ones(TASKS), POPULATION)
    sums = LogSums.of(task, propensity, reward, TASKS)
    building = min(repeat(lambda: LogSums.of(task, propensity, reward, TASKS), number=1, repeat=5))
    seconds = {
        "walk": min(repeat(walk, number=1, repeat=5)),
        "vectorised walk": min(repeat(vectorised_walk, number=5, repeat=5)) / 5,
        "sums": min(repeat(from_sums, number=1000, repeat=5)) / 1000,
        "sums, 64 at once": min(repeat(population_from_sums, number=1000, repeat=5)) / 1000 / POPULATION,
    }
    difference = max(abs(a - b) for a, b in zip(walk(), from_sums(), strict=True))
    evaluations = POPULATION * ITERATIONS
    print(f"{'':18}{'one policy':>14}{'speed-up':>12}{f'{evaluations} policies':>18}")
    for name, each in seconds.items():
        whole = each * evaluations + (building if name.startswith("sums") else 0)
        print(f"{name:18}{each * 1e6:11.1f} µs{seconds['walk'] / each:12,.0f}{whole:16.3f} s")
    print(f"building the sums once: {building * 1e3:.1f} ms; largest difference to the walk: {difference:.1e}")
    speedups = seconds["walk"] / seconds["sums"], seconds["vectorised walk"] / seconds["sums, 64 at once"]
    ok = min(speedups) >= LEAST_SPEEDUP and difference <= LARGEST_DIFFERENCE
    print(
        "ok" if ok else f"NOT ok: at least {LEAST_SPEEDUP} times faster and within {LARGEST_DIFFERENCE} are asked for"
    )
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
