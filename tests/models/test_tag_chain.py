"""Marginals over sentences of tags, against all sequences written out."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from sidequest.files import read_json, write_json
from sidequest.models import load
from sidequest.models.base import CHAINS
from sidequest.models.hf_export import TAG_CHAIN
from sidequest.models.tag_chain import PSEUDO_COUNT, TRUST, TagChain, tag_factors
from sidequest.runs.setup import Setup
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective
from tests.helpers.small_learners import small_task


def chain_of(rows: list[list[int]], tags: int) -> TagChain:
    chain = TagChain(tags).double()
    first, follows = tag_factors([np.array(row) for row in rows], tags)
    chain.first.copy_(torch.from_numpy(first))
    chain.follows.copy_(torch.from_numpy(follows))
    return chain


def by_enumeration(probabilities: np.ndarray, first: np.ndarray, follows: np.ndarray) -> np.ndarray:
    """Every sequence of tags, its weight, and the sum of those with a tag at a place."""
    places, tags = probabilities.shape
    marginals = np.zeros_like(probabilities)
    for sequence in itertools.product(range(tags), repeat=places):
        weight = first[sequence[0]] * np.prod([probabilities[t, tag] for t, tag in enumerate(sequence)])
        weight *= np.prod([follows[a, b] for a, b in itertools.pairwise(sequence)])
        for place, tag in enumerate(sequence):
            marginals[place, tag] += weight
    return marginals / marginals.sum(-1, keepdims=True)


def test_marginals_are_those_of_all_sequences():
    rng = np.random.default_rng(5)
    chain = chain_of([[0, 1, 2, 0], [2, 2, 1], [0, 0]], 3)
    logits, lengths = torch.from_numpy(rng.normal(size=(4, 5, 3))), [5, 3, 1, 4]
    words = torch.arange(5) < torch.tensor(lengths)[:, None]
    found = chain(logits, words)
    for row, length in enumerate(lengths):
        alone = logits[row, :length].softmax(-1).numpy()
        expected = by_enumeration(alone, chain.first.numpy(), chain.follows.numpy())
        np.testing.assert_allclose(found[row, :length].exp().numpy(), expected, rtol=1e-10)
        assert np.abs(alone - expected).max() > 0.01  # or the test could not tell a chain from none
        torch.testing.assert_close(found[row, length:], logits[row, length:])


def test_words_are_found_between_the_pieces_of_other_words():
    rng = np.random.default_rng(6)
    chain = chain_of([[0, 1, 2, 0], [2, 2, 1]], 3)
    words = torch.tensor([[False, True, False, True, True, False], [False, True, True, False, False, False]])
    logits = torch.from_numpy(rng.normal(size=(2, 6, 3)))
    found = chain(logits, words)
    for row in range(2):
        together = logits[row][words[row]][None]
        torch.testing.assert_close(found[row][words[row]][None], chain(together, torch.ones(together.shape[:2]) > 0))
    torch.testing.assert_close(found[~words], logits[~words])


def test_factors_are_ratios_of_counts():
    # Tags 0 1 1 | 0 1: each of three tags is counted once more, transitions from 0: to 1 twice, from 1: to 1 once.
    first, follows = tag_factors([np.array([0, 1, 1]), np.array([0, 1])], 3)
    anywhere = np.array([3, 4, 1]) / 8
    expected = (np.array([[0, 2, 0], [0, 1, 0], [0, 0, 0]]) + PSEUDO_COUNT * anywhere) / np.array([[3], [2], [1]])
    np.testing.assert_allclose(follows, (expected / anywhere) ** TRUST)
    np.testing.assert_allclose(first, ((np.array([2, 0, 0]) + anywhere) / 3 / anywhere) ** TRUST)
    np.testing.assert_allclose(follows[2], 1.0)  # nothing was seen after tag 2: nothing is known


def test_without_tags_a_chain_changes_nothing():
    logits = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    words = torch.ones(2, 4, dtype=torch.bool)
    torch.testing.assert_close(TagChain(3)(logits, words), logits.log_softmax(-1))
    assert not torch.allclose(chain_of([[0, 1], [0, 1]], 3).float()(logits, words), logits.log_softmax(-1))


def test_long_sentences_and_extreme_logits_stay_finite():
    chain = chain_of([[0, 1] * 20], 2).float()
    logits = torch.tensor([[80.0, -80.0], [-80.0, 80.0]]).repeat(1, 1000, 1)
    words = torch.ones(logits.shape[:2], dtype=torch.bool)
    assert chain(logits, words).isfinite().all()
    confident = torch.tensor([[-80.0, 80.0], [80.0, -80.0]]).repeat(1, 1000, 1)  # what the chain does not believe
    assert (chain(confident, words).argmax(-1) == confident.argmax(-1)).all()


def test_scores_know_the_chain_and_losses_do_not(encoders):
    suite = Suite.of(small_task("tags", Form.TOKENS, Objective.TAGGING))
    for kind in ("bilstm", "hf"):
        setup = Setup.of(suite, model={"kind": kind, "encoder": str(encoders("bert"))})
        learner = setup.learner(0)
        model, task = learner.model, suite.tasks["tags"]
        batch = setup.family.inputs(task, task.splits["report"]).collate(np.arange(5))
        model.eval()
        with torch.inference_mode():
            logits = model("tags", batch)
            assert not torch.equal(model.refined("tags", logits, batch)[batch["words"]], logits[batch["words"]])
        found = learner.predict("tags", "report")[:5]
        with torch.inference_mode():
            expected = model.refined("tags", logits, batch)[batch["words"]].argmax(-1)
        np.testing.assert_array_equal(np.concatenate(found), expected.numpy())


def test_models_written_before_chains_are_read(encoders, tmp_path):
    suite = Suite.of(small_task("tags", Form.TOKENS, Objective.TAGGING))
    task = suite.tasks["tags"]
    for kind in ("bilstm", "hf"):
        setup = Setup.of(suite, model={"kind": kind, "encoder": str(encoders("bert"))})
        place = tmp_path / kind
        setup.family.export(setup.learner(0).model, task, place)
        with_chain = load(place).predict(task.splits["report"]).tag_probabilities
        if kind == "hf":
            (place / TAG_CHAIN).unlink()
        else:
            state = load_file(place / "model.safetensors")
            save_file(
                {name: value for name, value in state.items() if not name.startswith(CHAINS)},
                place / "model.safetensors",
            )
        card = read_json(place / "sidequest.json")
        write_json(place / "sidequest.json", card | {"files": {}, "weights": ""}, seal=False)
        without = load(place).predict(task.splits["report"]).tag_probabilities
        assert any(np.abs(a - b).max() > 1e-3 for a, b in zip(with_chain, without, strict=True))
