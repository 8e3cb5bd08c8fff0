"""The card of an exported model, `README.md` beside its weights: what it does, whether its recipe helped, and what it rests on.

Model hubs show this file, so it is written for readers who know nothing of sidequest. It names no path of the machine that it was
written on.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from sidequest.files import write_atomically
from sidequest.formatting import between, fixed, seeds_of, signed
from sidequest.recipe import Phase, Recipe
from sidequest.records.comparisons import Comparison
from sidequest.records.runs import ScoresRecord
from sidequest.records.verdicts import FEWEST_SEEDS, warnings
from sidequest.version import __version__

if TYPE_CHECKING:
    from sidequest.models.saved import ModelCard  # imports torch, which a command that is refused does not need

PAGE = "README.md"
WITH_SIDEQUEST = "With sidequest:"  # how the part about loading begins
# The names that hubs give to tasks.
TASKS = {
    "classification": "text-classification",
    "multi-label": "text-classification",
    "regression": "text-classification",
    "tagging": "token-classification",
    "multiple-choice": "multiple-choice",
}
# What `transformers.pipeline` loads by itself, by the class that it takes for it.
PIPELINES = {
    "text-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "image-classification": "AutoModelForImageClassification",
}
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class CardFacts:
    """What a card tells. comparison: the one that the recipe was taken from, if it was one; other_model: whether that was made
    with another model than the one trained now. use: how it is loaded, in markdown, where its kind says more than usual."""

    card: ModelCard
    recipe: Recipe
    scores: ScoresRecord
    comparison: Comparison | None = None
    other_model: bool = False
    use: str = ""

    @property
    def chosen_with(self) -> str:
        return str(self.recipe.provenance.get("chosen_with", {}).get("model", {}).get("kind", "another model"))


def write_model_card(directory: Path, facts: CardFacts) -> Path:
    """directory: of the model."""
    path = directory / PAGE
    write_atomically(path, card_text(facts).encode())
    return path


def card_text(facts: CardFacts) -> str:
    """The card as markdown, after the YAML that hubs read."""
    sections = [
        f"---\n{yaml.safe_dump(_metadata(facts), sort_keys=False, allow_unicode=True)}---",
        _about(facts),
        _verdict(facts),
        _scores(facts),
        _recipe(facts.recipe, facts.scores.seed),
        _data(facts.recipe),
        _cost(facts),
        _use(facts),
    ]
    return "\n\n".join(sections) + "\n"


def _metadata(facts: CardFacts) -> dict[str, Any]:
    task, metric, pipeline = facts.card.task, facts.card.task.metrics[0], pipeline_of(facts.card)
    metadata: dict[str, Any] = {
        "library_name": "transformers" if facts.card.loads_with.startswith("transformers") else "sidequest",
        **({} if pipeline is None else {"pipeline_tag": pipeline}),
        "tags": ["sidequest", *(["auxiliary-tasks"] if facts.recipe.auxiliaries else [])],
        "metrics": list(task.metrics),
    }
    encoder = str(facts.recipe.provenance.get("model", {}).get("encoder") or "")
    if (
        "/" in encoder and HUB_NAME.fullmatch(encoder) and not Path(encoder).exists()
    ):  # a path is nobody else's business
        metadata["base_model"] = encoder
    value = facts.scores.report.get(metric, math.nan)
    if math.isfinite(value):
        result = {
            "task": {"type": _hub_task(facts.card)},
            "dataset": {"name": task.name, "type": task.name, "split": "report"},
            "metrics": [{"type": metric, "value": round(value, 4)}],
        }
        metadata["model-index"] = [{"name": task.name, "results": [result]}]
    return metadata


def _hub_task(card: ModelCard) -> str:
    return "image-classification" if "image" in card.task.columns else TASKS.get(card.task.objective, "other")


def pipeline_of(card: ModelCard) -> str | None:
    """The pipeline of plain transformers that loads the model as it is. With another class than its own it would give the model
    a head of random numbers and answer without a word, so a card must not name one then."""
    task = _hub_task(card)
    return task if card.loads_with == f"transformers.{PIPELINES.get(task)}" else None


def _about(facts: CardFacts) -> str:
    task, model = facts.card.task, facts.card.model
    what = f"{_a(task.objective)} model" if task.objective != "multi-label" else "A model of several labels per row"
    lines = [
        f"# {html.escape(_one_line(task.name))}",
        "",
        f"{what} of kind `{model.kind}`, "
        + (
            f"trained together with {_listed(facts.recipe.auxiliaries)}."
            if facts.recipe.auxiliaries
            else "trained on its own data alone."
        ),
    ]
    if task.labels:
        shown = _listed(task.labels[:50])
        lines.append(f"Labels: {shown}{', …' if len(task.labels) > 50 else ''}.")
    return "\n".join(lines)


def _verdict(facts: CardFacts) -> str:
    lines = ["## Did the auxiliary tasks help?", ""]
    comparison = facts.comparison
    if comparison is None:
        return "\n".join(
            [
                *lines,
                "Not shown: this recipe was not compared with training on the primary task alone over several seeds.",
            ]
        )
    lines.append(f"**{html.escape(comparison.verdict[0].upper() + comparison.verdict[1:])}.**")
    row = comparison.row(facts.recipe.method)
    first = None if row is None else row.to_baseline
    if row is not None and first is not None and len(comparison.seeds) >= FEWEST_SEEDS:
        scope = "other seeds and other report rows" if first.has_rows else "other seeds"
        lines += [
            "",
            f"`{row.method}` against `{comparison.baseline}` over {seeds_of(first.n)}: {signed(first.mean)} {comparison.metric}, "
            f"95 % interval for {scope} {between(*first.interval)}; {row.verdict}.",
        ]
    if facts.other_model:
        lines += [
            "",
            f"That was found with a model of kind `{facts.chosen_with}`. For this model of kind `{facts.card.model.kind}` it is "
            "an assumption.",
        ]
    lines += [f"\n{html.escape(_one_line(warning))}" for warning in warnings(comparison)]
    return "\n".join(lines)


def _scores(facts: CardFacts) -> str:
    scores = facts.scores
    lines = ["## Scores", "", "| metric | select | report |", "| --- | --- | --- |"]
    lines += [
        f"| {name} | {fixed(scores.select[name], 4) if name in scores.select else '–'} | {fixed(value, 4)} |"
        for name, value in scores.report.items()
    ]
    if scores.select:
        kept = "The model that is kept was chosen with *select*"
    else:
        kept = "The model learned from *train* and *select*, after everything was chosen"
    lines += ["", f"{kept}; *report* was looked at once, at the end."]
    metric = facts.card.task.metrics[0]
    if scores.interval is not None:
        low, high = scores.interval
        lines.append(
            f"For other rows of the same kind, {metric} on *report* lies between {fixed(low, 4)} and {fixed(high, 4)} (95 %)."
        )
    if scores.majority is not None:
        lines.append(f"The best constant answer has {fixed(scores.majority, 4)}.")
    return "\n".join(lines)


def _recipe(recipe: Recipe, seed: int) -> str:
    lines = [
        "## Recipe",
        "",
        f"Chosen by {_code(recipe.method)} on seed {recipe.provenance.get('seed', 0)}, trained on seed {seed}.",
        "",
        "| phase | task | part of the batches | loss weight | rows |",
        "| --- | --- | --- | --- | --- |",
    ]
    for number, phase in enumerate(recipe.phases, start=1):
        total = sum(phase.shares.values())
        for name, share in phase.shares.items():
            if share > 0:
                cells = (
                    number,
                    _code(name),
                    f"{share / total:.3f}",
                    f"{phase.weights.get(name, 1.0):g}",
                    _rows(phase, name),
                )
                lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _rows(phase: Phase, name: str) -> str:
    return f"{len(phase.subsets[name].ids)} chosen" if name in phase.subsets else "all"


def _data(recipe: Recipe) -> str:
    rows, digests = recipe.provenance.get("rows", {}), recipe.provenance.get("data", {})
    lines = ["## Data", "", "| task | train | select | report | digest of train |", "| --- | --- | --- | --- | --- |"]
    for name in recipe.tasks:
        counts = [str(rows.get(name, {}).get(split, "–")) for split in ("train", "select", "report")]
        lines.append(f"| {_code(name)} | {' | '.join(counts)} | `{str(digests.get(name, {}).get('train', ''))[:12]}` |")
    return "\n".join(lines)


def _cost(facts: CardFacts) -> str:
    chosen, trained = facts.recipe.cost, facts.scores.training
    training = "" if trained is None else f"; this training: {fixed(trained.x, 1)}x, {trained.batches} batches"
    return (
        "## Cost\n\n"
        f"Choosing: {fixed(chosen.x, 1)}x, {chosen.trials} trial trainings{training}. "
        "x is one training of the primary task alone."
    )


def _use(facts: CardFacts) -> str:
    usual = "With sidequest: `sidequest predict DIRECTORY FILE`, or `sidequest.models.load(DIRECTORY).predict(rows)`."
    lines = ["## Use", "", facts.use.strip() or usual]
    if pipeline_of(facts.card) is None:
        lines += ["", _without_pipeline(facts.card)]
    columns = facts.card.task.inputs.get("columns", {})
    named = _listed([value for value in columns.values() if isinstance(value, str)])
    if named:
        lines += ["", f"`sidequest predict` reads the columns {named} of a file."]
    return "\n".join([*lines, "", f"Made by sidequest {__version__}."])


def _without_pipeline(card: ModelCard) -> str:
    if not card.loads_with.startswith("transformers."):
        return "`transformers.pipeline` does not load this model: load it with sidequest."
    name = card.loads_with.removeprefix("transformers.")
    mean = " and average its logits over the tokens of a text" if name == PIPELINES["token-classification"] else ""
    return f"`transformers.pipeline` does not load this model as it is: load it with `{name}`{mean}, or with sidequest."


def use_of(directory: Path) -> str:
    """What an export itself says about loading it: its README without the heading and the line about what it is."""
    path = directory / PAGE
    if not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8")
    found = text.find(WITH_SIDEQUEST)
    return text[found:] if found >= 0 else ""


def _code(name: str) -> str:
    """A user's name or label as code, whatever it holds: also inside a table."""
    return f"`{_one_line(name).replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_code, names))


def _a(word: str) -> str:
    return f"A {word}"
