"""What the columns of a table of runs are: the score, the block, sets, auxiliaries, or what a tracker exports besides."""

from __future__ import annotations

from collections.abc import Sequence

from sidequest.errors import DataError
from sidequest.tasks.guessing.names import word_set, words_of
from sidequest.tasks.readers.table import Table

SCORES = ("score", "metric", "accuracy", "f1", "value", "dev", "eval")
BLOCKS = ("seed", "block", "repeat", "replicate")
SETS = ("tasks", "set", "mixture", "auxiliaries")
# Words in names of columns that are no auxiliaries. Of a measure, higher is better.
MEASURES = word_set(
    "score accuracy acc f1 precision recall auc auroc bleu rouge mcc matthews pearson spearman r2 map ndcg"
)
ABOUT_RUNS = word_set(
    """
    loss perplexity ppl mse rmse mae lr rate epoch epochs step steps time runtime seconds minutes hours duration date created
    timestamp id index run batch gpu cost warmup decay
    """
)


def score_column(table: Table, given: str | None) -> str:
    """The column of the score; refused where none or several could be it."""
    if (name := _named(table, given, SCORES, "score") or _measured(table)) is not None:
        return name
    raise DataError(
        f"no column is called {', '.join(SCORES)}; say which is the score, higher being better: --score NAME. Columns are "
        f"{', '.join(table.columns)}",
        file=table.source,
    )


def block_column(table: Table, given: str | None) -> str | None:
    return _named(table, given, BLOCKS, "block")


def set_column(table: Table, others: Sequence[str | None]) -> str | None:
    """The column that names sets; others: columns that are something else."""
    return next((name for name in table.columns if name.lower() in SETS and name not in others), None)


def _measured(table: Table) -> str | None:
    """The score by the last word of a name, as in `eval/accuracy`."""
    named = [name for name in table.columns if words_of(name)[-1:] and words_of(name)[-1] in MEASURES]
    if len(named) > 1:
        raise DataError(f"several columns could be the score: {', '.join(named)}; say --score NAME", file=table.source)
    return named[0] if named else None


def could_be_task(table: Table, name: str) -> bool:
    """Whether a column may be how much of an auxiliary a run used: it holds numbers, and is not called loss or epochs."""
    if {*words_of(name)} & (MEASURES | ABOUT_RUNS):
        return False
    return any(_is_number(value) for value in table.columns[name].to_pylist())


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _named(table: Table, given: str | None, usual: Sequence[str], what: str) -> str | None:
    if given is not None:
        return table.name_of(given)
    named = [name for name in table.columns if name.lower() in usual]
    if len(named) > 1:
        raise DataError(
            f"several columns could be the {what}: {', '.join(named)}; say --{what} NAME", file=table.source
        )
    return named[0] if named else None
