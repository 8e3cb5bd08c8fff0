"""Carved splits: disjoint, complete, deterministic, stratified, and blind to the rest of the suite."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sidequest.tasks.examples import Examples
from sidequest.tasks.splits import carve, generator, limit, quotas, report_rows, select_rows
from sidequest.tasks.task import Objective


def rows_with(target: np.ndarray) -> Examples:
    texts = pa.array([f"text {i}" for i in range(len(target))], type=pa.string())
    return Examples({"text": texts}, target, np.arange(len(target)) + 7)


@pytest.mark.parametrize(
    ("n", "expected"),
    [(0, 0), (3, 0), (4, 1), (40, 10), (399, 99), (400, 100), (999, 100), (1000, 100), (20_000, 2_000)],
)
def test_size_of_select(n: int, expected: int) -> None:
    assert select_rows(n) == expected


def test_size_of_report() -> None:
    assert report_rows(1000) == 200


@pytest.mark.parametrize("case", range(40))
def test_carving_is_disjoint_complete_deterministic_and_stratified(case: int) -> None:
    rng = np.random.default_rng(case)
    n, classes = int(rng.integers(2, 600)), int(rng.integers(1, 9))
    shares = rng.dirichlet(np.ones(classes))
    examples = rows_with(rng.choice(classes, size=n, p=shares))
    take = int(rng.integers(0, n))
    stays, carved = carve(examples, take, Objective.CLASSIFICATION, generator(case, "task", "select"))

    assert len(carved) == take
    assert sorted([*stays.ids, *carved.ids]) == examples.ids.tolist()
    again = carve(examples, take, Objective.CLASSIFICATION, generator(case, "task", "select"))
    assert np.array_equal(again[1].ids, carved.ids)
    counts = np.bincount(examples.target, minlength=classes)
    off = np.abs(np.bincount(carved.target, minlength=classes) - take * counts / n)
    if counts[counts > 0].min() * (1 - take / n) > 1:  # otherwise keeping a class's last row in train comes first
        assert off.max() < 1 + 1e-6
    texts = dict(zip(examples.ids.tolist(), examples.columns["text"].to_pylist(), strict=True))
    assert [texts[i] for i in carved.ids.tolist()] == carved.columns["text"].to_pylist()
    assert np.all(np.diff(stays.ids) > 0)
    assert np.all(np.diff(carved.ids) > 0)


def test_seed_and_name_decide_the_draw() -> None:
    examples = rows_with(np.arange(1000) % 3)
    drawn = {
        key: tuple(carve(examples, 100, Objective.CLASSIFICATION, generator(*key))[1].ids.tolist())
        for key in [(0, "a", "select"), (1, "a", "select"), (0, "b", "select"), (0, "a", "report")]
    }
    assert len(set(drawn.values())) == 4


def test_no_class_loses_its_last_row_while_another_can_give_one() -> None:
    counts = np.array([1, 1, 1, 97])
    for take in range(97):
        assert np.all(quotas(counts, take)[:3] == 0)
    assert quotas(counts, 100).tolist() == counts.tolist()


def test_quotas_add_up() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        counts = rng.integers(0, 50, size=rng.integers(1, 8))
        take = int(rng.integers(0, counts.sum() + 1))
        quota = quotas(counts, take)
        assert quota.sum() == take
        assert np.all((quota >= 0) & (quota <= counts))


def test_regression_is_stratified_by_quantile() -> None:
    rng = np.random.default_rng(0)
    target = np.exp(rng.normal(size=2000) * 2)
    _, carved = carve(rows_with(target), 200, Objective.REGRESSION, generator(0, "t", "select"))
    edges = np.quantile(target, np.linspace(0, 1, 11)[1:-1])
    counts = np.bincount(np.searchsorted(edges, np.asarray(carved.target), side="right"), minlength=10)
    assert counts.tolist() == [20] * 10


def test_a_regression_target_with_few_values_can_be_carved() -> None:
    for target in (np.zeros(50), np.repeat([0.0, 1.0], 25)):
        stays, carved = carve(rows_with(target), 12, Objective.REGRESSION, generator(0, "t"))
        assert (len(stays), len(carved)) == (38, 12)
        assert abs(carved.target.mean() - target.mean()) < 0.01


def test_tagging_is_carved_plainly() -> None:
    target = pa.array([[i % 2] * 3 for i in range(40)], type=pa.list_(pa.int64()))
    examples = Examples({"tokens": pa.array([["a", "b", "c"]] * 40)}, target, np.arange(40))
    stays, carved = carve(examples, 10, Objective.TAGGING, generator(0, "t"))
    assert sorted([*stays.ids, *carved.ids]) == list(range(40))


def test_limit_keeps_order_and_shares() -> None:
    examples = rows_with(np.repeat([0, 1], [900, 100]))
    few = limit(examples, 50, Objective.CLASSIFICATION, generator(0, "t", "limit"))
    assert np.bincount(few.target).tolist() == [45, 5]
    assert np.all(np.diff(few.ids) > 0)
    rare = rows_with(np.repeat([0, 1, 2], [997, 2, 1]))
    assert set(limit(rare, 10, Objective.CLASSIFICATION, generator(0, "t", "limit")).target.tolist()) == {0, 1, 2}
    assert limit(examples, 5000, Objective.CLASSIFICATION, generator(0, "t", "limit")) is examples


def test_rare_labels_of_multi_label_rows_are_shared_out() -> None:
    rng = np.random.default_rng(0)
    shares = np.array([0.5, 0.3, 0.05, 0.02])
    target = (rng.random((1000, 4)) < shares).astype(np.uint8)
    counts = target.sum(axis=0)
    plain_errors, errors = [], []
    for seed in range(20):
        _, carved = carve(rows_with(target), 100, Objective.MULTILABEL, generator(seed, "t", "select"))
        _, plain = carve(rows_with(target), 100, Objective.TAGGING, generator(seed, "t", "select"))
        assert len(carved) == 100
        errors.append(np.abs(carved.target.sum(axis=0) - counts / 10))
        plain_errors.append(np.abs(plain.target.sum(axis=0) - counts / 10))
    assert np.max(errors, axis=0)[3] < 1  # the rarest label is its own group
    assert np.all(np.mean(errors, axis=0)[2:] < 0.5 * np.mean(plain_errors, axis=0)[2:])


def test_a_label_of_a_single_row_stays_in_train() -> None:
    target = np.zeros((50, 3), dtype=np.uint8)
    target[:, 0], target[7, 2], target[::2, 1] = 1, 1, 1
    for seed in range(20):
        stays, _ = carve(rows_with(target), 25, Objective.MULTILABEL, generator(seed, "t", "select"))
        assert stays.target[:, 2].sum() == 1
