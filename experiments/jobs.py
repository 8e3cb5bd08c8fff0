"""Jobs of an experiment, each kept as a small file in the repository: a later day goes on where this one stopped.

A job is one training, or one choice and its training. Its file, `results/EXPERIMENT/SIZE/JOB.json`, says the method, the task,
the seed, the scores, the seconds by the clock and of the processor, and two digests: `plan`, of the settings that define the job,
and `code`, of the library's code that decides its result. A file counts if its plan is today's and its code is today's or has
been shown equal by a repetition: see `experiments/README.md`. Other files are shown by `python -m experiments status` and not
used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

from sidequest.errors import SettingsError
from sidequest.files import digest, read_json, write_json
from sidequest.search.code_version import selection_code_version, training_code_version
from sidequest.search.executors import run_jobs

RESULTS = Path(__file__).parent / "results"
VERSIONS = "versions.json"  # of an experiment: by method, groups of versions of the code that gave the same scores

Result = dict[str, Any]
State = Literal["done", "other code", "other settings", "missing"]


@dataclass(frozen=True)
class ExperimentJob:
    """One file of results. settings: all that decides the result besides what is named here, the data and the library's code.

    paper: the package of `sidequest.methods` that decides something; what only trains, or mixes without choosing, has none.
    needs: the name of a job whose result comes first.
    """

    method: str
    task: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    paper: str | None = None
    needs: str | None = None

    @property
    def name(self) -> str:
        return f"{self.task}-{self.method}-{self.seed}".replace("/", "-").replace(" ", "-").replace(":", "")

    @property
    def plan(self) -> str:
        return digest([self.method, self.task, self.seed, dict(self.settings)])[:16]

    @property
    def code(self) -> str:
        return training_code_version() if self.paper is None else selection_code_version(self.paper)


@dataclass(frozen=True)
class ResultStore:
    """The files of one experiment at one size."""

    experiment: str
    size: str
    place: Path = RESULTS

    def file(self, job: ExperimentJob) -> Path:
        return self.place / self.experiment / self.size / f"{job.name}.json"

    def state(self, job: ExperimentJob) -> State:
        path = self.file(job)
        if not path.exists():
            return "missing"
        kept = read_json(path)
        if kept["plan"] != job.plan:
            return "other settings"
        return "done" if self._same_code(job, kept["code"]) else "other code"

    def read(self, job: ExperimentJob) -> Result | None:
        """The whole file of a job that counts."""
        return read_json(self.file(job)) if self.state(job) == "done" else None

    def write(self, job: ExperimentJob, result: Result, seconds: float) -> Result:
        kept = {
            "method": job.method,
            "task": job.task,
            "seed": job.seed,
            **result,
            "seconds": round(seconds, 1),
            "plan": job.plan,
            "code": job.code,
            "date": date.today().isoformat(),
        }
        write_json(self.file(job), kept, seal=False)
        return kept

    def found_equal(self, job: ExperimentJob, old: str) -> None:
        """A repetition of a job of this method gave the same scores under today's code."""
        path = self.place / self.experiment / VERSIONS
        known = read_json(path) if path.exists() else {}
        groups = known.get(job.method, [])
        together = {old, job.code}.union(*(group for group in groups if {old, job.code} & {*group}))
        rest = [group for group in groups if not {*group} & together]
        write_json(path, {**known, job.method: [*rest, sorted(together)]}, seal=False)

    def _same_code(self, job: ExperimentJob, code: str) -> bool:
        if code == job.code:
            return True
        path = self.place / self.experiment / VERSIONS
        groups = read_json(path).get(job.method, []) if path.exists() else []
        return any({code, job.code} <= {*group} for group in groups)


RunOne = Callable[[Any, ExperimentJob, Mapping[str, Result]], Result]


@dataclass(frozen=True)
class _Common:
    run: RunOne
    shared: Any
    store: ResultStore


def run_missing(
    run: RunOne,
    shared: Any,
    jobs: Sequence[ExperimentJob],
    store: ResultStore,
    *,
    workers: int = 1,
    minutes: float | None = None,
) -> dict[str, Result]:
    """Results by name of all jobs that are done; those that are not are run, until `minutes` have passed (0: none is).

    run: a module-level function of (shared, job, results of the jobs it needs). A job whose needs are not met waits.
    """
    until = None if minutes is None else time.monotonic() + 60 * minutes
    by_job: dict[str, Result] = {}
    for job in jobs:
        if (kept := store.read(job)) is not None:
            by_job[job.name] = kept
    common = _Common(run, shared, store)
    while ready := [job for job in jobs if job.name not in by_job and (job.needs is None or job.needs in by_job)]:
        if until is not None and time.monotonic() >= until:
            break
        # With a bound a job begins only when the one before it has ended, and so nothing is started that is then thrown away.
        some = ready if until is None else ready[:workers]
        for index, kept in run_jobs(_run_one, common, [(job, _needed(job, by_job)) for job in some], workers):
            by_job[some[index].name] = kept
            print(f"[{len(by_job)}/{len(jobs)}] {some[index].name}: {_told(kept)}, {_seconds(kept)}", flush=True)
    return by_job


def _needed(job: ExperimentJob, by_job: Mapping[str, Result]) -> dict[str, Result]:
    return {} if job.needs is None else {job.needs: by_job[job.needs]}


def _run_one(common: _Common, given: tuple[ExperimentJob, Mapping[str, Result]]) -> Result:
    job, needed = given
    begun, busy = time.perf_counter(), time.process_time()
    result = common.run(common.shared, job, needed)
    # A machine that does other work as well stretches the seconds by the clock, not those of the processor.
    result = {**result, "cpu_seconds": round(time.process_time() - busy, 1)}
    return common.store.write(job, result, time.perf_counter() - begun)


def _told(kept: Result) -> str:
    return f"{kept['report']:.4f}" if isinstance(kept.get("report"), float) else "done"


def _seconds(kept: Result) -> str:
    return f"{kept['seconds']:.0f} s ({kept['cpu_seconds']:.0f} s of the processor)"


def repeat(run: RunOne, shared: Any, jobs: Sequence[ExperimentJob], store: ResultStore, method: str) -> bool:
    """Run the cheapest stored job of a method again, one of other code where there is one, with the stored result that it needs.
    Equal results: the version of its code counts as today's."""
    by_name = {job.name: job for job in jobs}
    of_method = [
        job for job in jobs if job.method == method and (job.needs is None or store.file(by_name[job.needs]).exists())
    ]
    by_state = {state: [job for job in of_method if store.state(job) == state] for state in ("other code", "done")}
    stored = by_state["other code"] or by_state["done"]
    if not stored:
        raise SettingsError(f"{store.experiment}: there is no stored job of {method!r} that could be repeated")
    job = min(stored, key=lambda each: read_json(store.file(each))["seconds"])
    kept = read_json(store.file(job))
    needed = {} if job.needs is None else {job.needs: read_json(store.file(by_name[job.needs]))}
    again = run(shared, job, needed)
    same = all(_equal(kept.get(name), value) for name, value in again.items() if name in ("select", "report", "tasks"))
    if same:
        store.found_equal(job, kept["code"])
    print(f"{job.name}: {'the same scores' if same else 'other scores'} as with code {kept['code']}")
    return same


def _equal(kept: Any, again: Any) -> bool:
    """But for the last bits of a number, which another processor may sum otherwise."""
    if isinstance(again, Mapping):
        return (
            isinstance(kept, Mapping) and kept.keys() == again.keys() and all(_equal(kept[k], again[k]) for k in again)
        )
    if isinstance(again, float):
        return isinstance(kept, float) and math.isclose(kept, again, rel_tol=1e-12)
    return bool(kept == again)


def counts(store: ResultStore, jobs: Sequence[ExperimentJob]) -> dict[State, int]:
    """How many jobs are in which state."""
    by_state: dict[State, int] = dict.fromkeys(("done", "other code", "other settings", "missing"), 0)
    for job in jobs:
        by_state[store.state(job)] += 1
    return by_state
