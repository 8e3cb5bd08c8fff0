"""Figures need nothing but a recipe's evidence."""

import json

import numpy as np
import pytest

from sidequest.records.evidence import WeightCourse
from sidequest.report.alphavil import alphas_over_training, weights_over_training

EVIDENCE = {
    "tasks": ["primary", "other"],
    "best_epoch": 2,
    "epochs": [
        {"alphas": [1.1, 0.5], "weights": [1.1, 0.5], "score": 0.5, "losses": [1.0]},
        {"alphas": [1.0, 0.9], "weights": [1.1, 0.4], "score": 0.6, "losses": [0.9]},
    ],
}


def test_alphas_are_drawn_by_epoch():
    figure = alphas_over_training(WeightCourse.of(json.loads(json.dumps(EVIDENCE))))
    assert [trace.name for trace in figure.data] == ["primary", "other"]
    assert list(figure.data[1].x) == [1, 2]
    assert list(figure.data[1].y) == [0.5, 0.9]


def test_weights_are_shares_and_start_equal():
    figure = weights_over_training(WeightCourse.of(EVIDENCE))
    shares = np.array([trace.y for trace in figure.data])
    assert shares.sum(axis=0) == pytest.approx([1, 1, 1])
    assert shares[:, 0] == pytest.approx([0.5, 0.5])
    assert shares[1, 2] == pytest.approx(0.4 / 1.5)
    assert list(figure.data[0].x) == [0, 1, 2]
    assert figure.layout.shapes[0].x0 == 2
