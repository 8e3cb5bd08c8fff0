"""Judge methods by a truth table: run the selection, look up what the chosen set is worth.

Where asked for, the recipe is also trained as the method gave it, with its mixture, weights, rows and phases: a method that
returns weights of all tasks is not judged by a set that is always everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path

from sidequest.errors import RunMismatch, SettingsError, SidequestError, end_if_all_would_fail
from sidequest.files import temporary_directory
from sidequest.methods.registry import MethodChoice, Methods, choices_of
from sidequest.progress import Progress
from sidequest.recipe import Phase, Recipe
from sidequest.records.standings import Judged, StandingsRecord
from sidequest.runs.cells import place_job, variant
from sidequest.runs.consent import check_consent
from sidequest.runs.device import check_device
from sidequest.runs.finals import train_once
from sidequest.runs.luggage import Luggage
from sidequest.runs.selecting import select
from sidequest.runs.setup import Setup
from sidequest.runs.standings import facts_of, is_noise, standing
from sidequest.runs.truth import TruthTable
from sidequest.search.executors import Executor, WorkerJournal, as_executor, run_jobs
from sidequest.store import sweep
from sidequest.tasks.loading import load_suite


@dataclass(frozen=True)
class JudgeJob:
    """label: the method's name, with the settings that are not its defaults."""

    choice: MethodChoice
    label: str
    seed: int
    directory: Path | None
    train: bool = False


@dataclass(frozen=True)
class Truth:
    """A table with the setup that it was made with. name: of its file."""

    name: str
    table: TruthTable
    setup: Setup
    luggage: Luggage | None = None  # for workers: what was computed for the setup

    @classmethod
    def read(cls, path: Path, suite: str | None = None, *, allow_code: bool = False) -> Truth:
        """suite: where the suite is now, if it is not where the table says."""
        table = TruthTable.read(path)
        beside = path.parent / table.suite
        loaded = load_suite(suite or (str(beside) if beside.exists() else table.suite))
        if {*table.candidates} < {*loaded.candidates}:  # a table may be of some of the candidates
            loaded = loaded.subset(table.candidates)
        try:
            setup = Setup.of(loaded, table.model, table.train, where=str(path), allow_code=allow_code)
        except SettingsError as error:
            raise error if str(path) in str(error) else SettingsError(f"{path}: {error}") from None
        check_consent(setup.model, {}, str(path), allow_code=allow_code)
        provenance = {"data": table.data, "rows": table.rows}
        setup.check_data(provenance, table.candidates, path)
        missing = {*table.candidates} ^ {*setup.suite.candidates}
        if missing or setup.suite.primary != table.primary:
            raise RunMismatch(f"{path}: is about {table.primary!r} with other candidates than the suite's: {missing}")
        return cls(path.stem, table, setup)


def judge(
    truth: Truth,
    methods: Methods,
    seeds: Sequence[int],
    *,
    directory: Path | None = None,
    train: bool = False,
    workers: int | Executor = 1,
    progress: Progress | None = None,
) -> StandingsRecord:
    """Every method on every seed. A method that the suite's model cannot serve is reported as such, not an error.

    directory: keeps the runs, so that the same call continues. train: also train what each method gave, and the primary alone, on
        the same seed.
    """
    executor = as_executor(workers)
    check_device(executor)
    kept = (
        directory / truth.name if directory is not None and executor.shares_disk else None
    )  # or a node could not keep it
    jobs = [_job(truth.setup, choice, seed, kept, train) for choice in choices_of(methods).values() for seed in seeds]
    by_job: dict[int, Judged | str] = {}
    sweep()
    journal = WorkerJournal(directory, only_trouble=True)
    truth.setup.prepare(progress, executor, journal)
    labels = [f"{job.label} seed {job.seed}" for job in jobs]
    running = None if progress is None else progress.running
    common = replace(truth, luggage=Luggage.of(truth.setup, executor))
    ended = run_jobs(judge_one, common, jobs, executor, labels=labels, failed=_failed, journal=journal, running=running)
    for count, (index, result) in enumerate(ended, start=1):
        by_job[index] = result
        if progress is not None:
            label = result if isinstance(result, str) else f"{result.method} seed {result.seed}: {result.regret:.4f}"
            spent = sum(each.x for each in by_job.values() if isinstance(each, Judged))
            progress.job(count, len(jobs), label, result, spent)
    return _record(truth, jobs, [by_job[index] for index in range(len(jobs))])


def _job(setup: Setup, choice: MethodChoice, seed: int, base: Path | None, train: bool) -> JudgeJob:
    """Refuses bad settings, and a directory of another suite, before any work."""
    given = choice.make().settings.model_dump(mode="json", exclude_defaults=True)
    label = f"{choice.name} {variant(given)}" if given else choice.name
    if base is None:
        return JudgeJob(choice, label, seed, None, train)
    directory = place_job(base, setup, choice.name, given, seed, source=choice.source).directory
    return JudgeJob(choice, label, seed, directory, train)


def _record(truth: Truth, jobs: Sequence[JudgeJob], results: Sequence[Judged | str]) -> StandingsRecord:
    facts = facts_of(truth.table)
    standings = []
    for label in dict.fromkeys(job.label for job in jobs):
        own = [result for job, result in zip(jobs, results, strict=True) if job.label == label]
        failed = next((result for result in own if isinstance(result, str)), "")
        standings.append(standing(truth.name, label, facts, [each for each in own if isinstance(each, Judged)], failed))
    return StandingsRecord(
        standings=standings,
        judged=[result for result in results if isinstance(result, Judged)],
        tables={truth.name: facts},
        noise=[truth.name] if is_noise(truth.table) else [],
    )


def judge_one(truth: Truth, job: JudgeJob) -> Judged | str:
    """One selection, judged; or why the method could not select."""
    setup = truth.setup if truth.luggage is None else truth.luggage.unpacked()
    with _place(job) as directory:
        try:
            recipe = select(setup, job.choice.source, settings=job.choice.settings, seed=job.seed, directory=directory)
        except SidequestError as error:
            end_if_all_would_fail(error)
            return str(error).splitlines()[0]
        table = truth.table
        chosen = table.mixture_of(recipe)
        score = alone = nan
        if job.train:
            single = Recipe(method="single", primary=table.primary, phases=(Phase(shares={table.primary: 1}),))
            score = train_once(setup, recipe, job.seed, directory).record.score
            alone = train_once(setup, single, job.seed).record.score
    return Judged(
        truth=truth.name,
        method=job.label,
        seed=job.seed,
        auxiliaries=list(chosen),
        regret=table.regret(chosen),
        rank=table.rank(chosen),
        subsets=len(table.subsets),
        x=recipe.cost.x,
        score=score,
        alone=alone,
    )


@contextmanager
def _place(job: JudgeJob) -> Iterator[Path | None]:
    """Where the run is. A model that the method itself trains needs a place until it is scored."""
    if job.directory is not None or not (job.train and job.choice.make().trains_model):
        yield job.directory
    else:
        with temporary_directory("score") as place:
            yield place


def _failed(job: JudgeJob, error: Exception) -> str:
    """It failed by itself, ran too long, or its workers were lost: the others go on."""
    end_if_all_would_fail(error)
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
