"""Temperatures: found where they were planted, never changing an answer, and kept with the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from sidequest.errors import SettingsError
from sidequest.model_settings import HfSettings, PooledSettings
from sidequest.models import family as make_family
from sidequest.models import load
from sidequest.models.calibration import COLDEST, calibrate, calibration_error, fitted
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective
from tests.helpers.sample_models import make_task, stir


def drawn(rng: np.random.Generator, logits: np.ndarray) -> np.ndarray:
    """Truth drawn from the probabilities that logits stand for."""
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return (rng.random((len(logits), 1)) > chances.cumsum(1)).sum(1).clip(max=logits.shape[1] - 1)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_planted_temperature_is_found(temperature: float) -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(size=(20_000, 4)) * 2
    calibration = fitted(true * temperature, drawn(rng, true), Objective.CLASSIFICATION)
    assert calibration.temperature == pytest.approx(temperature, rel=0.05)
    assert calibration.error[1] < 0.015
    if temperature == 3.0:
        assert calibration.error[0] > 0.1
        assert calibration.loss[1] < calibration.loss[0]


def test_a_planted_temperature_of_several_labels_is_found() -> None:
    rng = np.random.default_rng(1)
    true = rng.normal(size=(8_000, 3)) * 2 - 1
    marks = (rng.random(true.shape) < 1 / (1 + np.exp(-true))).astype(np.int64)
    calibration = fitted(true * 2.5, marks, Objective.MULTILABEL)
    assert calibration.temperature == pytest.approx(2.5, rel=0.05)
    assert calibration.items == 24_000


def test_choices_that_a_row_lacks_have_no_say() -> None:
    rng = np.random.default_rng(2)
    true = rng.normal(size=(6_000, 3)) * 2
    true[::2, 2] = -np.inf
    calibration = fitted(true * 2, drawn(rng, true), Objective.CHOICE)
    assert calibration.temperature == pytest.approx(2, rel=0.08)


def test_a_select_without_errors_is_not_believed_without_end() -> None:
    logits = np.eye(2)[np.arange(40) % 2] * 3.0
    assert fitted(logits, np.arange(40) % 2, Objective.CLASSIFICATION).temperature == pytest.approx(COLDEST, abs=0.01)


def test_the_calibration_error_is_the_gap_between_confidence_and_truth() -> None:
    logits = np.log(np.array([[0.9, 0.1]] * 10))
    assert calibration_error(logits, np.array([0] * 9 + [1])) == pytest.approx(0)
    assert calibration_error(logits, np.array([0] * 4 + [1] * 6)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("form", "objective"),
    [
        (Form.TEXT, Objective.CLASSIFICATION),
        (Form.TEXT, Objective.MULTILABEL),
        (Form.TOKENS, Objective.TAGGING),
        (Form.CHOICES, Objective.CHOICE),
    ],
)
def test_a_calibrated_export_keeps_its_answers_and_says_so(form, objective, encoders, tmp_path) -> None:
    task = make_task("t", form, objective, rows=40)
    task = replace(task, splits={"train": task.train, "select": task.train})
    family = make_family(Suite.of(task), HfSettings(encoder=str(encoders()), start="random"))
    model = stir(family.build(0))
    with torch.no_grad():
        for head in model.heads.values():
            for parameter in head.parameters():
                parameter.mul_(4)  # far too sure of itself about random labels
    family.export(model, task, tmp_path / "m")
    before = load(tmp_path / "m").predict(task.train)
    calibration = calibrate(family, model, task, tmp_path / "m")
    predictor = load(tmp_path / "m")
    after = predictor.predict(task.train)
    assert calibration.temperature > 2
    assert predictor.members[0].temperature == calibration.temperature
    assert calibration.loss[1] < calibration.loss[0]
    if objective == Objective.TAGGING:
        assert all(np.array_equal(one, two) for one, two in zip(before.tags, after.tags, strict=True))
        assert max(row.max() for row in after.tag_probabilities) < max(row.max() for row in before.tag_probabilities)
    else:
        assert np.array_equal(before.answers, after.answers)
        assert after.probabilities.max(1).mean() < before.probabilities.max(1).mean()


def test_a_regression_cannot_be_calibrated(encoders, tmp_path) -> None:
    task = make_task("t", Form.TEXT, Objective.REGRESSION)
    family = make_family(Suite.of(task), PooledSettings(encoder=str(encoders())))
    with pytest.raises(SettingsError, match="'t' is a regression and predicts values"):
        calibrate(family, family.build(0), task, tmp_path)
