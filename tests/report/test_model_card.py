"""The card beside an exported model: verdict, interval, scores, recipe, data and cost, fit for a hub."""

import json

import pytest
import yaml

from sidequest.models.saved import ModelCard
from sidequest.recipe import Recipe
from sidequest.records.runs import ScoresRecord
from sidequest.report.model_card import CardFacts, card_text, use_of
from sidequest.runs.setup import Setup
from sidequest.tasks.memory import make_task
from sidequest.tasks.suite import Suite
from tests.helpers.trained import trained_digits


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    place = tmp_path_factory.mktemp("trained")
    comparison = trained_digits(place, seeds=3)
    return place, comparison


@pytest.fixture
def facts(trained):
    place, comparison = trained
    best = place / "best"
    return CardFacts(
        ModelCard.read_from(best / "model"), Recipe.read(best / "recipe.json"), ScoresRecord.read(best), comparison
    )


def test_what_an_export_says_about_loading_it_stays(facts, tmp_path):
    (tmp_path / "README.md").write_text("# t\n\nA model.\n\nWith sidequest: so.\n\nWith transformers: thus.\n")
    text = card_text(CardFacts(facts.card, facts.recipe, facts.scores, use=use_of(tmp_path)))
    assert "## Use\n\nWith sidequest: so.\n\nWith transformers: thus.\n" in text
    assert "A model.\n" not in text
    assert "`sidequest predict DIRECTORY FILE`" in card_text(facts)


def test_training_writes_the_card_beside_the_weights(trained, facts):
    place, comparison = trained
    text = (place / "best" / "model" / "README.md").read_text()
    assert text == card_text(facts)
    row = comparison.row("all")
    low, high = row.to_baseline.interval
    assert comparison.verdict[1:] in text
    assert f"95 % interval for other seeds and other report rows [{low:+.3f}, {high:+.3f}]" in text
    scores = facts.scores
    assert f"| accuracy | {scores.select['accuracy']:.4f} | {scores.report['accuracy']:.4f} |" in text
    assert scores.interval[0] <= scores.report["accuracy"] <= scores.interval[1]
    assert f"between {scores.interval[0]:.4f} and {scores.interval[1]:.4f} (95 %)" in text
    for name in facts.recipe.tasks:
        assert f"| 1 | `{name}` |" in text
        assert facts.recipe.provenance["data"][name]["train"][:12] in text
    assert f"this training: {scores.training.x:.1f}x" in text
    assert str(place) not in text


def test_hubs_read_its_head_as_they_define_it(facts):
    from huggingface_hub import ModelCard as HubCard

    card = HubCard(card_text(facts))
    assert card.data.pipeline_tag is None  # transformers has no class for it
    assert card.data.library_name == "sidequest"
    (result,) = card.data.eval_results
    assert result.task_type == "image-classification"
    assert result.metric_type == "accuracy"
    assert result.metric_value == round(facts.scores.report["accuracy"], 4)
    assert result.dataset_split == "report"


TEXTS = {"text": ["good cat", "bad dog"] * 8}
SAID = "`transformers.pipeline` does not load this model"
MEAN = (
    f"{SAID} as it is: load it with `AutoModelForTokenClassification` and average its logits over the tokens of a text"
)
TAGS = {"tokens": [["good", "cat"], ["bad", "dog"]] * 8, "tags": [["A", "N"], ["A", "N"]] * 8}
CHOICES = {"text": ["the cat"] * 16, "choices": [["good", "bad"]] * 16, "label": [0, 1] * 8}


@pytest.mark.parametrize(
    ("objective", "columns", "pooling", "pairing", "pipeline", "said"),
    [
        ("classification", {**TEXTS, "label": [0, 1] * 8}, "native", "cross", "text-classification", None),
        ("regression", {**TEXTS, "label": [0.0, 1.0] * 8}, "native", "cross", "text-classification", None),
        ("tagging", TAGS, "native", "cross", "token-classification", None),
        ("classification", {**TEXTS, "label": [0, 1] * 8}, "mean", "cross", None, MEAN),
        ("regression", {**TEXTS, "label": [0.0, 1.0] * 8}, "mean", "cross", None, MEAN),
        (
            "classification",
            {**TEXTS, "text_b": ["cat"] * 16, "label": [0, 1] * 8},
            "mean",
            "bi",
            None,
            f"{SAID}: load it with sidequest.",
        ),
        (
            "multiple-choice",
            CHOICES,
            "native",
            "cross",
            None,
            f"{SAID} as it is: load it with `AutoModelForMultipleChoice`",
        ),
    ],
)
def test_only_a_pipeline_that_loads_the_model_as_it_is_is_named(
    facts, encoders, tmp_path, objective, columns, pooling, pairing, pipeline, said
):
    import transformers

    task = make_task("t", objective, columns, report=columns, primary=True)
    settings = {"kind": "hf", "encoder": str(encoders()), "pooling": pooling, "pairing": pairing}
    setup = Setup.of(Suite.of(task), settings, {})
    place = tmp_path / "model"
    setup.family.export(setup.learner(0).model, task, place)
    card = ModelCard.read_from(place)
    text = card_text(CardFacts(card, facts.recipe, facts.scores, use=use_of(place)))
    assert yaml.safe_load(text.split("---")[1]).get("pipeline_tag") == pipeline
    if said is not None:
        assert said in text
        return
    assert SAID not in text
    transformers.logging.set_verbosity_error()
    loaded = transformers.pipeline(pipeline, str(place), device="cpu").model
    assert type(loaded).__name__ == json.loads((place / "config.json").read_text())["architectures"][0]


def test_what_was_not_compared_is_not_claimed(facts):
    alone = card_text(CardFacts(facts.card, facts.recipe, facts.scores))
    assert "Not shown: this recipe was not compared" in alone
    few = facts.comparison.model_copy(update={"seeds": [0, 1]})
    text = card_text(CardFacts(facts.card, facts.recipe, facts.scores, few))
    assert "No verdict: 2 seeds cannot tell a difference from noise" in text
    assert "95 % interval for" not in text


def test_a_verdict_of_a_proxy_is_said_to_be_one(facts):
    provenance = {**facts.recipe.provenance, "chosen_with": {"model": {"kind": "pooled"}}}
    recipe = facts.recipe.model_copy(update={"provenance": provenance})
    text = card_text(CardFacts(facts.card, recipe, facts.scores, facts.comparison, other_model=True))
    assert "That was found with a model of kind `pooled`. For this model of kind `convnet` it is an assumption." in text


def test_hostile_names_stay_in_their_place(facts):
    name = "<script>alert(1)</script>|`x`\n# y: [z]"
    task = facts.card.task.model_copy(update={"name": name, "labels": (name, "b")})
    card = facts.card.model_copy(update={"task": task})
    text = card_text(CardFacts(card, facts.recipe, facts.scores))
    head, _, body = text.removeprefix("---\n").partition("---\n")
    assert yaml.safe_load(head)["model-index"][0]["name"] == name
    assert "\n# y" not in body
    assert "# &lt;script&gt;" in body
    assert "`<script>alert(1)</script>\\|'x' # y: [z]`" in body  # as code, which is shown and not read
