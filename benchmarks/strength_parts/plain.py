"""Plain alternatives over frozen features: scikit-learn on sentence vectors, on word states and on pixels.

Features are computed here with transformers alone, so that a fault in sidequest's encoding could not hide in both columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch

from sidequest.files import cache_directory, npy_bytes, write_atomically
from sidequest.models.encoders import quiet_transformers, resolve
from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Form, Objective, Task
from strength_parts.primaries import labelled_rows

LAYERS = (0, 2, 4, 6)  # of the word states: embeddings to the last layer of MiniLM
STRENGTHS = np.logspace(
    -4, 2, 13
)  # inverse penalties of logistic regression; ridge takes penalties from 0.01 to 10,000
WORD_STRENGTHS = (0.003, 0.03, 0.3)
MAX_LENGTH = 256  # as the encoder's own card has it
NEW_DEFAULTS = {"l1_ratios": (0,), "use_legacy_attributes": False}  # of scikit-learn 1.10: said, they bring no warning


@cache
def encoder() -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    place = str(resolve("minilm").directory)
    with quiet_transformers():
        return AutoTokenizer.from_pretrained(place), AutoModel.from_pretrained(place).eval()


@torch.inference_mode()
def _states(texts: Sequence[Any], words: bool) -> np.ndarray:
    """Texts → the mean of their last states [n, width]; sentences of words → a row per word [words, layers * width]."""
    tokeniser, model = encoder()
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    out: dict[int, np.ndarray] = {}
    for start in range(0, len(order), 32):
        part = order[start : start + 32]
        batch = tokeniser(
            [texts[index] for index in part],
            is_split_into_words=words,
            padding=True,
            truncation=not words,
            max_length=None if words else MAX_LENGTH,
            return_tensors="pt",
        )
        result = model(**batch, output_hidden_states=words)
        if not words:
            mask = batch["attention_mask"][..., None]
            pooled = (result.last_hidden_state * mask).sum(1) / mask.sum(1)
            out |= dict(zip(part, pooled.numpy()[:, None], strict=True))
            continue
        layers = torch.cat([result.hidden_states[layer] for layer in LAYERS], dim=-1).numpy()
        for row, index in enumerate(part):
            member = np.array([-1 if word is None else word for word in batch.word_ids(row)])
            out[index] = np.stack([layers[row, member == word].mean(0) for word in range(len(texts[index]))])
    return np.concatenate([out[index] for index in range(len(texts))])


def states(texts: Sequence[Any], words: bool = False) -> np.ndarray:
    """`_states`, kept on disk by the content of the texts."""
    key = hashlib.sha256(json.dumps([list(texts), words, LAYERS, MAX_LENGTH], ensure_ascii=False).encode()).hexdigest()
    path = cache_directory() / "strength" / f"{key}.npy"
    if not path.is_file():
        write_atomically(path, npy_bytes(_states(texts, words)))
    return np.load(path)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def pair_features(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """u ⋆ v, |u − v| and the cosine."""
    u, v = unit(u), unit(v)
    return np.hstack([u * v, np.abs(u - v), (u * v).sum(1, keepdims=True)])


def text_features(task: Task, rows: Examples) -> np.ndarray:
    """A vector per row, or per choice [rows, choices, features]."""
    first = states(rows.columns["text"].to_pylist())
    if task.form == Form.TEXT:
        return unit(first)
    if task.form == Form.PAIR:
        return pair_features(first, states(rows.columns["text_b"].to_pylist()))
    choices = rows.columns["choices"].to_pylist()
    flat = states([text for row in choices for text in row])
    width = len(choices[0])
    return pair_features(np.repeat(first, width, axis=0), flat).reshape(len(choices), width, -1)


def warm(task: Task) -> None:
    """Encode all rows, so that the seconds of a cell are those of learning."""
    for rows in (*task.splits.values(), labelled_rows(task)):
        if task.form == Form.TOKENS:
            states(rows.columns["tokens"].to_pylist(), words=True)
        elif task.form != Form.IMAGE:
            text_features(task, rows)


# ---- contenders: (task, the rows to learn from, seed) → predictions for *report* --------------------------------------------


def has_cosine(task: Task) -> bool:
    two = task.objective != Objective.CLASSIFICATION or len(task.labels) == 2
    return task.form in (Form.PAIR, Form.CHOICES) and two


def cosine(task: Task, rows: Examples, seed: int) -> Any:
    """The cosine itself; the choice nearest to the premise; for two classes, a threshold that is best on `rows`."""
    scores = text_features(task, task.splits["report"])[..., -1]
    if task.objective == Objective.REGRESSION:
        return scores
    if task.objective == Objective.CHOICE:
        return scores.argmax(1)
    known, target = text_features(task, rows)[..., -1], np.asarray(rows.target)
    order = np.argsort(known)
    gained = np.concatenate([[0], np.cumsum(np.where(target[order] == 1, -1, 1))])  # by calling the lowest k rows 0
    hits = np.stack([(target == 1).sum() + gained, (target == 0).sum() - gained])  # a high cosine may mean either label
    flip, cut = np.unravel_index(hits.argmax(), hits.shape)
    edges = np.concatenate([[-np.inf], (known[order][1:] + known[order][:-1]) / 2, [np.inf]])
    return ((scores > edges[cut]) ^ bool(flip)).astype(np.int64)


def probe(task: Task, rows: Examples, seed: int) -> Any:
    """The linear read-out that fits the form."""
    return {Form.TOKENS: word_probe, Form.IMAGE: pixel_probe}.get(task.form, text_probe)(task, rows, seed)


def text_probe(task: Task, rows: Examples, seed: int) -> Any:
    """RidgeCV or LogisticRegressionCV on the row's features, standardised; strength by cross-validation on `rows`."""
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    known, asked = text_features(task, rows), text_features(task, task.splits["report"])
    target = np.asarray(rows.target)
    if task.objective == Objective.REGRESSION:
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13)))
        return model.fit(known, target).predict(asked)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    scoring = {"macro_f1": "f1_macro", "matthews": "matthews_corrcoef"}.get(task.metric, "accuracy")
    options = {"Cs": STRENGTHS, "cv": folds, "scoring": scoring, "max_iter": 2000} | NEW_DEFAULTS
    if task.objective == Objective.CHOICE:
        # A choice's logit is linear in its features: logistic regression on the difference of the two, in both directions.
        difference = known[:, 0] - known[:, 1]
        scale = difference.std(0) + 1e-9
        x, y = np.vstack([difference, -difference]) / scale, np.concatenate([target == 0, target == 1])
        model = LogisticRegressionCV(fit_intercept=False, **options).fit(x, y)
        return np.where(model.decision_function((asked[:, 0] - asked[:, 1]) / scale) > 0, 0, 1)
    balanced = "balanced" if task.metric == "macro_f1" else None
    model = make_pipeline(StandardScaler(), LogisticRegressionCV(class_weight=balanced, **options))
    return model.fit(known, target).predict(asked)


def word_probe(task: Task, rows: Examples, seed: int) -> list[np.ndarray]:
    """Logistic regression on word states of four layers, concatenated; strength by *select*, then fitted on `rows`."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def rows_of(rows: Examples) -> tuple[np.ndarray, np.ndarray]:
        target: Any = rows.target
        return states(rows.columns["tokens"].to_pylist(), words=True), target.flatten().to_numpy()

    train, select = rows_of(task.splits["train"]), rows_of(task.splits["select"])
    fitted = {}
    for strength in WORD_STRENGTHS:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=300))
        fitted[strength] = model.fit(*train).score(*select)
    best = max(fitted, key=lambda strength: fitted[strength])
    model = make_pipeline(StandardScaler(), LogisticRegression(C=best, max_iter=300)).fit(*rows_of(rows))
    asked, _ = rows_of(task.splits["report"])
    lengths = [len(words) for words in task.splits["report"].columns["tokens"].to_pylist()]
    return np.split(model.predict(asked), np.cumsum(lengths)[:-1])


def pixel_svm(task: Task, rows: Examples, seed: int) -> Any:
    """An RBF SVM on pixels; C and the width of its kernel by cross-validation on `rows`."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    known, asked = (np.asarray(r.columns["image"], np.float64) for r in (rows, task.splits["report"]))
    scale = known.max()
    grid = {"C": [1, 10, 100], "gamma": [f / (known[0].size * (known / scale).var()) for f in (0.3, 1, 3)]}
    search = GridSearchCV(SVC(), grid, cv=StratifiedKFold(3, shuffle=True, random_state=seed))
    search.fit(known.reshape(len(known), -1) / scale, np.asarray(rows.target))
    return search.predict(asked.reshape(len(asked), -1) / scale)


def pixel_probe(task: Task, rows: Examples, seed: int) -> Any:
    """LogisticRegressionCV on pixels."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import StratifiedKFold

    known, asked = (np.asarray(r.columns["image"], np.float64) for r in (rows, task.splits["report"]))
    scale = known.max()
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    options = {"Cs": np.logspace(-3, 1, 5), "cv": folds, "scoring": "accuracy", "max_iter": 500} | NEW_DEFAULTS
    model = LogisticRegressionCV(**options)
    model.fit(known.reshape(len(known), -1) / scale, np.asarray(rows.target))
    return model.predict(asked.reshape(len(asked), -1) / scale)
