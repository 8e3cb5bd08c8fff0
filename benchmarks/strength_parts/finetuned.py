"""Plain fine-tuning with transformers, as one would write it by hand, and SetFit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sidequest.models.devices import computes_bf16
from sidequest.models.encoders import quiet_transformers, resolve
from sidequest.tasks.examples import Examples
from sidequest.tasks.task import Form, Objective, Task

MAX_LENGTH = 128
IGNORE = -100


@dataclass(frozen=True)
class FineTuning:
    """A recipe: AdamW without weight decay, linear warm-up and decay, gradients clipped at 1, batches of similar length; the
    model after the last step is the result."""

    epochs: int
    learning_rate: float
    batch_size: int = 16
    warmup: float = 0.1

    def __call__(self, task: Task, rows: Examples, seed: int) -> Any:
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        tokeniser, model = _model(task)
        encoded, labels = _encode(tokeniser, task, rows), _labels(task, rows)
        steps = self.epochs * -(-len(rows) // self.batch_size)
        optimiser = torch.optim.AdamW(model.parameters(), lr=self.learning_rate, weight_decay=0.0, fused=True)
        warm = max(1, round(self.warmup * steps))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
        )
        model.train()
        for _ in range(self.epochs):
            for part in _batches(encoded, self.batch_size, rng):
                batch = _collate(tokeniser, task, encoded, part, labels)
                with torch.autocast("cpu", torch.bfloat16, enabled=computes_bf16(torch.device("cpu"))):
                    loss = model(**batch).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
                schedule.step()
                optimiser.zero_grad(set_to_none=True)
        return _predict(tokeniser, model.eval(), task)


def _model(task: Task) -> tuple[Any, Any]:
    from transformers import (
        AutoModelForMultipleChoice,
        AutoModelForSequenceClassification,
        AutoModelForTokenClassification,
        AutoTokenizer,
    )

    place = str(resolve("minilm").directory)
    with quiet_transformers():
        tokeniser = AutoTokenizer.from_pretrained(place)
        if task.objective == Objective.TAGGING:
            return tokeniser, AutoModelForTokenClassification.from_pretrained(place, num_labels=len(task.labels))
        if task.objective == Objective.CHOICE:
            return tokeniser, AutoModelForMultipleChoice.from_pretrained(place)
        outputs = 1 if task.objective == Objective.REGRESSION else len(task.labels)
        return tokeniser, AutoModelForSequenceClassification.from_pretrained(place, num_labels=outputs)


def _encode(tokeniser: Any, task: Task, rows: Examples) -> list[Any]:
    """Token ids per row; with choices a list of them per row."""
    columns = {name: column.to_pylist() for name, column in rows.columns.items()}
    cut = {"truncation": True, "max_length": MAX_LENGTH}
    if task.form == Form.TOKENS:
        return [tokeniser(words, is_split_into_words=True) for words in columns["tokens"]]
    if task.form == Form.CHOICES:
        pairs = zip(columns["text"], columns["choices"], strict=True)
        return [[tokeniser(text, choice, **cut) for choice in choices] for text, choices in pairs]
    second = columns.get("text_b", [None] * len(rows))
    return [tokeniser(a, b, **cut) for a, b in zip(columns["text"], second, strict=True)]


def _labels(task: Task, rows: Examples) -> list[Any]:
    target: Any = rows.target
    return target.to_pylist() if task.objective == Objective.TAGGING else target.tolist()


def _batches(encoded: list[Any], size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Random batches of rows of similar length, as `group_by_length` of the Trainer makes them."""
    length = np.array([len(row[0]["input_ids"] if isinstance(row, list) else row["input_ids"]) for row in encoded])
    order = np.argsort(length + rng.uniform(0, 5, len(length)))
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    return [parts[index] for index in rng.permutation(len(parts))]


def _first_pieces(encoded: Any) -> np.ndarray:
    """bool [tokens]: whether a token is the first of its word, which is the one that carries the tag."""
    words = np.array([-1 if word is None else word for word in encoded.word_ids()])
    return (words >= 0) & (words != np.concatenate([[-1], words[:-1]]))


def _collate(tokeniser: Any, task: Task, encoded: list[Any], part: np.ndarray, labels: list[Any] | None) -> Any:
    names = ("input_ids", "attention_mask", "token_type_ids")
    flat = [one for index in part for one in (encoded[index] if isinstance(encoded[index], list) else [encoded[index]])]
    with quiet_transformers():
        batch = dict(tokeniser.pad([{name: one[name] for name in names} for one in flat], return_tensors="pt"))
    if task.objective == Objective.CHOICE:
        batch = {name: value.view(len(part), -1, value.shape[-1]) for name, value in batch.items()}
    if labels is None:
        return batch
    if task.objective == Objective.TAGGING:
        tags = torch.full(batch["input_ids"].shape, IGNORE)
        for row, index in enumerate(part):
            tags[row, np.flatnonzero(_first_pieces(encoded[index]))] = torch.tensor(labels[index])
        return {**batch, "labels": tags}
    kind = torch.float32 if task.objective == Objective.REGRESSION else torch.int64
    return {**batch, "labels": torch.tensor([labels[index] for index in part], dtype=kind)}


@torch.inference_mode()
def _predict(tokeniser: Any, model: Any, task: Task) -> Any:
    encoded = _encode(tokeniser, task, task.splits["report"])
    out: dict[int, Any] = {}
    for part in _batches(encoded, 32, np.random.default_rng(0)):
        with torch.autocast("cpu", torch.bfloat16, enabled=computes_bf16(torch.device("cpu"))):
            logits = model(**_collate(tokeniser, task, encoded, part, None)).logits.float().numpy()
        for row, index in enumerate(part):
            if task.objective == Objective.TAGGING:
                out[index] = logits[row, np.flatnonzero(_first_pieces(encoded[index]))].argmax(-1)
            else:
                out[index] = logits[row, 0] if task.objective == Objective.REGRESSION else logits[row].argmax()
    ordered = [out[index] for index in range(len(encoded))]
    return ordered if task.objective == Objective.TAGGING else np.array(ordered)


def setfit(task: Task, rows: Examples, seed: int, *, iterations: int) -> np.ndarray:
    """SetFit: contrastive training on pairs of texts (`iterations` of each sign per row), then logistic regression."""
    import tempfile

    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(str(resolve("minilm").directory))
    data = Dataset.from_dict({"text": rows.columns["text"].to_pylist(), "label": np.asarray(rows.target).tolist()})
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(
            output_dir=directory,
            batch_size=16,
            num_epochs=1,
            num_iterations=iterations,
            seed=seed,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            show_progress_bar=False,
        )
        Trainer(model=model, args=arguments, train_dataset=data).train()
    texts = task.splits["report"].columns["text"].to_pylist()
    return np.asarray(model.predict(texts, show_progress_bar=False))
