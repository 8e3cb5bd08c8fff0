"""Tasks over sentences of random words, of every form and objective: what the tests of several methods share."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Form, Objective, Task


def examples_of(
    sentences: Sequence[np.ndarray], texts: Sequence[str], form: Form, objective: Objective, others: tuple[str, str]
) -> Examples:
    """The target is a function of the words, so that there is something to learn. others: two more texts to choose from."""
    first = np.array([sentence[0] for sentence in sentences])
    columns: dict[str, object] = {"text": pa.array(texts)}
    target: object = (first % 2).astype(np.int64)
    if form == Form.PAIR:
        columns["text_b"] = pa.array(texts[::-1])
    if form == Form.CHOICES:
        columns["choices"] = pa.array([[text, *others][: 2 + (i % 2)] for i, text in enumerate(texts)])
    if form == Form.TOKENS:
        columns = {"tokens": pa.array([text.split() for text in texts])}
        target = pa.array([(sentence % 3).tolist() for sentence in sentences], type=pa.list_(pa.int64()))
    if objective == Objective.REGRESSION:
        target = 10.0 + first
    if objective == Objective.MULTILABEL:
        target = np.stack([first % 2, first % 3 == 0, first > 20], axis=1).astype(np.uint8)
    return Examples(columns, target, 100 + np.arange(len(texts)))


def task_of(name: str, form: Form, objective: Objective, splits: Mapping[str, Examples]) -> Task:
    labels, metric = {
        Objective.CLASSIFICATION: (("even", "odd"), "accuracy"),
        Objective.MULTILABEL: (("odd", "third", "late"), "micro_f1"),
        Objective.REGRESSION: ((), "pearson"),
        Objective.TAGGING: (("a", "b", "c"), "token_accuracy"),
        Objective.CHOICE: ((), "accuracy"),
    }[objective]
    return Task(name, objective, form, dict(splits), labels, (metric,), kind="words")
