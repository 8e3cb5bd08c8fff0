"""Every method and every command that continues, on a convnet, frozen text and a fine-tuned encoder, small enough to be killed
hundreds of times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.faults.runner import Case

BANDIT = ("rounds=4", "batches=2")
SEARCH = ("trials=3", "initial=2")
POLICY = ("steps=8", "round_steps=2")
HEADS = ("warmup_epochs=1",)
ROWS = ("rows=10", "count=20")
RANKED = (*ROWS, "chunk=16", "discriminator_epochs=1")

IMAGES: dict[str, Sequence[str]] = {
    "auto": (),
    "single": (),
    "all": (),
    "uniform": (),
    "size": (),
    "temperature": (),
    "random-subset": (),
    "heu-size": (),
    "heu-type": (),
    "heu-len": (),
    "autosem": (*BANDIT, *SEARCH),
    "autosem-p1": BANDIT,
    "autosem-no-stage1": SEARCH,
    "autosem-grid": (*BANDIT, "trials=3"),
    "exp3s": POLICY,
    "counterfactual": (*POLICY, "entropy_weights=[0.2,0.5]", "cma_iterations=3", "cma_population=4"),
    "alphavil": ("epochs=3",),
    "diw": ("epochs=3", "patience=2"),
    "task-modelling": ("subsets=3",),
    "merge-to-mix": (),
    "flad": POLICY,
}
FINE_TUNED: dict[str, Sequence[str]] = {
    "gradts-thres": HEADS,
    "gradts-trial": HEADS,
    "gradts-fg": HEADS,
    "alphavil": ("epochs=3",),
    "auto": (),
    "autosem-p1": BANDIT,
}
FROZEN: dict[str, Sequence[str]] = {
    "similarity": RANKED,
    "similarity-ce": RANKED,
    "random-data": ROWS,
    "diw": ("epochs=3", "patience=2"),
    "auto": (),
    "counterfactual": (*POLICY, "entropy_weights=[0.2]", "cma_iterations=2", "cma_population=4"),
}
CHEAP = {"single", "all", "uniform", "size", "temperature", "random-subset", "heu-type"}  # they choose without training


def sets(*pairs: str) -> list[str]:
    return [text for pair in pairs for text in ("--set", pair)]


def cases(suites: Path) -> dict[str, Case]:
    """By name, as in `images-autosem` or `words-compare-2`."""
    images, words = str(suites / "images" / "suite.yaml"), str(suites / "words" / "suite.yaml")
    found: list[Case] = []
    for kind, suite, model, methods in (
        ("images", images, [], IMAGES),
        ("frozen", words, [], FROZEN),
        ("tuned", words, ["--model", "hf"], FINE_TUNED),
    ):
        for method, settings in methods.items():
            arguments = ["select", suite, *model, "-m", method, "-o", "run", "--workers", "1", *sets(*settings)]
            found.append(Case(f"{kind}-{method}", arguments))
        chosen = ["select", suite, *model, "-m", "all", "-o", "run", "--workers", "1"]
        found.append(Case(f"{kind}-train", ["train", "run", "--calibrate"], first=[chosen]))
        found.append(Case(f"{kind}-train-all-rows", ["train", "run", "--all-rows"], first=[chosen]))
        compared = ["compare", suite, *model, "-m", "heu-type", "--seeds", "1", "-o", "run"]
        for workers in (1, 2):
            name = f"{kind}-compare" if workers == 1 else f"{kind}-compare-2"
            found.append(Case(name, [*compared, "--workers", str(workers)], workers=workers))
    words_too = ["select", words, "--model", "bilstm", "-m", "heu-size", "-o", "run", "--workers", "1"]
    found.append(Case("bilstm-heu-size", words_too))
    two = ["select", images, "-m", "autosem-no-stage1", "-o", "run", "--workers", "2", *sets(*SEARCH)]
    found.append(Case("images-trials-2", two, workers=2))
    oracle = ["oracle", images, "--seeds", "2", "-o", "truth.json", "--workers"]
    score = [
        "score",
        "--truth",
        "truth.json",
        "-m",
        "heu-size,exp3s",
        "--seeds",
        "1",
        "-o",
        "run",
        *sets("exp3s.steps=4"),
    ]
    for workers in (1, 2):
        end = "" if workers == 1 else "-2"
        found.append(Case(f"images-oracle{end}", [*oracle, str(workers)], workers=workers))
        found.append(Case(f"images-score{end}", [*score, "--workers", str(workers)], [[*oracle, "1"]], workers))
    found.append(Case("frozen-oracle", ["oracle", words, "--seeds", "2", "-o", "truth.json", "--workers", "1"]))
    grown = ["compare", images, "-m", "heu-type", "--seeds", "1", "-o", "run", "--workers", "1"]
    larger = ["compare", images, "-m", "heu-type,heu-size", "--seeds", "2", "-o", "run", "--workers", "1"]
    found.append(Case("images-grown", larger, first=[grown]))
    stored = ["select", images, "-m", "autosem-no-stage1", "-o", "run", "--workers", "1", *sets(*SEARCH)]
    found.append(Case("images-storage", [*stored, "--storage", "sqlite:///trials.db"]))
    tuned = ["select", words, "-m", "heu-size", "-o", "run", "--workers", "1", "--tune", "3"]
    found.append(Case("frozen-tuned-select", tuned, workers=2))
    found.append(Case("images-tune", ["tune", images, "-o", "tuning.json", "--trainings", "5", "--workers", "1"]))
    found.append(Case("frozen-tune", ["tune", words, "-o", "tuning.json", "--trainings", "5", "--workers", "2"]))
    for kind, suite in (("images", images), ("frozen", words)):
        found.append(Case(f"{kind}-no-method", ["select", suite, "-o", "run", "--workers", "2"], workers=2))
    several = [
        "compare",
        words,
        "-m",
        "heu-type",
        "--primary",
        "mood,topic",
        "--seeds",
        "1",
        "-o",
        "run",
        "--workers",
        "1",
    ]
    found.append(Case("frozen-primaries", several))
    return {case.name: case for case in found}
