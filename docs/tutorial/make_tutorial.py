"""Records the tutorial: runs every command of it on the sample files and writes what they printed into index.md.

    python docs/tutorial/make_tutorial.py

It takes some minutes. Steps marked `cheap` train nothing; tests/docs/test_tutorial.py runs those again and compares.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "index.md"
EMOTIONS = (
    "dialogue_emotions.csv",
    "emotions_onehot.csv",
    "emotions_list.jsonl",
    "product_reviews.csv",
    "sms_spam.csv",
)


@dataclass(frozen=True)
class Step:
    """before: what the reader is told. command: what is run, in a shell.

    lines, last: how many lines of the output are shown from its beginning and from its end.
    cheap: whether it trains nothing and prints the same every time.
    """

    before: str
    command: str
    lines: int = 200
    last: int = 0
    cheap: bool = False


FIX = (
    "sed -i -e 's/^primary: .*/&\\ndrop_overlap: true/' -e 's/^    label: sentiment .*/    label: sentiment\\n"
    "    labels: {negativ: negative, negative: negative, positive: positive, postive: positive}/' suite.yaml"
)
THREE = (
    "printf 'Utterance\\nThey offered me the job this morning!\\nNobody came to the farewell party.\\n"
    "I heard steps behind the door.\\n' > new.csv"
)
PLAIN = """cat > plain.py <<END
from transformers import AutoModelForTokenClassification, AutoTokenizer

model = AutoModelForTokenClassification.from_pretrained("runs/real/model")
tokenizer = AutoTokenizer.from_pretrained("runs/real/model")
inputs = tokenizer(["They offered me the job this morning!"], return_tensors="pt")
logits = model(**inputs).logits.mean(1)  # the model reads the mean of a text's states: see its card
print(model.config.id2label[int(logits[0].argmax())])
END
python plain.py 2>/dev/null"""

STEPS = (
    Step(
        """# Tutorial: from your files to a verdict, and to a model

You have 260 lines of dialogue with an emotion each, which is little, and other files that somebody collected.
Would training on those too make a better model of the emotions?

The files lie in `docs/tutorial/data` of the repository.
They are invented, free to use, and have the faults of real ones: a header as Kaggle writes it, `cp1252`, a JSON list, several labels per row, misspelt labels, rows without any.
All that is shown here was printed by the commands when this page was made (`docs/tutorial/make_tutorial.py`).

## A suite from the files

`init` looks at each file once and writes a suite file, with a reason and the other candidates beside every guess.""",
        f"sidequest init {' '.join(f'data/{name}' for name in EMOTIONS)} --primary dialogue_emotions -o suite.yaml",
        cheap=True,
    ),
    Step(
        """Read the guesses: they are yours to change in `suite.yaml`.
Here `Sentiment` would have been another possible label of the dialogue.

## Look before you train""",
        "sidequest check suite.yaml 2>&1",
        lines=14,
        cheap=True,
    ),
    Step(
        """Two things deserve attention: some rows of *report* and *select* are also in a train split, even in that of another task, so their scores would flatter; and two labels of the reviews are misspelt.
One line each fixes it.""",
        f"{FIX}\nsidequest check suite.yaml 2>&1 | grep -v repetition",
        lines=12,
        cheap=True,
    ),
    Step(
        """## What will it cost?

`x` is one training of the primary alone, the unit of all costs here.""",
        "sidequest compare suite.yaml -m heu-type,heu-size --model pooled --seeds 3 -o runs/compare --dry-run",
    ),
    Step(
        """## Does anything help?

Each method chooses by *select*, its choice is trained, and *report* judges it; `single-long` and `probe` are controls that a method has to beat.""",
        "sidequest compare suite.yaml -m heu-type,heu-size --model pooled --seeds 3 -o runs/compare 2>/dev/null",
    ),
    Step(
        """The page `runs/compare/report.html` shows the same with figures: what each method saw, which rows it took, learning curves, and how to repeat it.

Another method can be added to a finished comparison; only that one is trained.""",
        "sidequest compare suite.yaml -m heu-type,heu-size,uniform --model pooled --seeds 3 -o runs/compare 2>/dev/null | head -14",
    ),
    Step(
        """## The model

`train` on a comparison takes the method that its verdict speaks of, or the primary alone where nothing is shown to help.""",
        "sidequest train runs/compare -o runs/best 2>/dev/null",
    ),
    Step(
        "It predicts new rows, and scores those that have a label.",
        f"{THREE}\nsidequest predict runs/best/model new.csv",
    ),
    Step("", "sidequest predict runs/best/model data/dialogue_emotions.csv -o predictions.csv"),
    Step(
        """## Choose with a cheap model, train the real one

`pooled` reads frozen states of a small encoder, which takes seconds. The same recipe can then fine-tune a transformer.""",
        "sidequest select suite.yaml -m heu-type --model pooled -o runs/chosen 2>/dev/null",
    ),
    Step("", "sidequest train runs/chosen --model hf --set train.epochs=2 -o runs/real 2>/dev/null"),
    Step(
        "The directory is an ordinary one of transformers; no sidequest is needed to use it, and the card in it has the code.",
        PLAIN,
    ),
    Step(
        """Beside the weights stands a card for those who get the model: what was found, with its interval, the scores, the recipe, the data and the cost.
`sidequest push` would send it to a hub.""",
        "sed -n '/^# /,/^## Recipe/p' runs/real/model/README.md\nsidequest push runs/real me/emotions --dry-run",
    ),
    Step(
        """## Other trainers

The recipe also goes to trainers of your own (see [exports](../export.md)); what a format cannot say is said in words.""",
        "sidequest export runs/chosen --to trl -o export",
    ),
    Step(
        """And the other way round: scores of runs that you made elsewhere become a verdict with [`fit`](../fit.md).""",
        "printf 'tasks,seed,score\\nnone,1,0.701\\nnone,2,0.709\\nnone,3,0.698\\nnews,1,0.722\\nnews,2,0.731\\nnews,3,0.724\\n"
        "spam,1,0.699\\nspam,2,0.705\\nspam,3,0.700\\nnews+spam,1,0.719\\nnews+spam,2,0.729\\nnews+spam,3,0.721\\n' > runs.csv\n"
        "sidequest fit runs.csv",
        cheap=True,
    ),
)


def environment(home: Path) -> dict[str, str]:
    """A shell in which `sidequest` and `python` are those of this interpreter, in a terminal of 80 columns."""
    bin_directory = home / "bin"
    bin_directory.mkdir(parents=True, exist_ok=True)
    for name, arguments in (("sidequest", "-m sidequest"), ("python", "")):
        script = bin_directory / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        script.chmod(0o755)
    found = {key: value for key, value in os.environ.items() if not key.startswith("SIDEQUEST_")}
    return found | {
        "PATH": f"{bin_directory}:{found['PATH']}",
        "PYTHONPATH": str(HERE.parents[1] / "src"),
        "SIDEQUEST_CACHE": str(home / "cache"),
        "COLUMNS": "80",
        "TRANSFORMERS_VERBOSITY": "error",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }


def run(step: Step, place: Path, home: Path) -> str:
    """What a step prints, as far as it is shown."""
    done = subprocess.run(
        ["bash", "-c", step.command], cwd=place, env=environment(home), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{step.command}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    left = len(lines) - step.lines - step.last
    shown = lines if left <= 0 else [*lines[: step.lines], f"… {left} more lines", *lines[len(lines) - step.last :]]
    return "\n".join(shown).strip("\n")


def typed(command: str) -> str:
    """A command as it looks in a terminal: what continues after the first line of a text has another prompt."""
    lines, inside = [], False
    for line in command.split("\n"):
        lines.append(f"{'>' if inside else '$'} {line}".rstrip())
        inside = line != "END" and (inside or line.endswith("<<END"))
    return "\n".join(lines)


def page(steps: Sequence[Step], outputs: Sequence[str]) -> str:
    parts = []
    for step, output in zip(steps, outputs, strict=True):
        parts += [step.before, f"```\n{typed(step.command)}\n{output}".rstrip() + "\n```"]
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(parts)) + "\n"


def prepared(place: Path) -> Path:
    """An empty directory with the sample files in `data/`."""
    (place / "data").mkdir(parents=True)
    for path in (HERE / "data").iterdir():
        if path.name != "answers.json":
            shutil.copy(path, place / "data")
    return place


def recorded(steps: Sequence[Step]) -> str:
    """The page of these steps, each run after the one before."""
    with tempfile.TemporaryDirectory() as name:
        place = prepared(Path(name) / "day")
        outputs = []
        for step in steps:
            print(f"$ {step.command}", flush=True)
            outputs.append(run(step, place, Path(name)))
    return page(steps, outputs)


if __name__ == "__main__":
    PAGE.write_text(recorded(STEPS), encoding="utf-8")
