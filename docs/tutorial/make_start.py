"""Records the page Start: runs its commands on the embedded digits and writes what they printed into start.md.

    python docs/tutorial/make_start.py

It takes about five minutes on two cores. Steps marked `cheap` train nothing; tests/docs/test_tutorial.py runs those again and
compares.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "start.md"
RECORDER: dict[str, Any] = runpy.run_path(str(HERE / "make_tutorial.py"))
Step = RECORDER["Step"]

STEPS = (
    Step(
        """# Start

Ten minutes, on a machine with Python 3.11 and nothing else.
What is shown here was printed by the commands when this page was made (`docs/tutorial/make_start.py`).

## Install

```text
pip install 'sidequest[demo]'     # with a small encoder that needs no network
```

From a checkout, `make demo` sets up an environment and runs the next command.

## See it work

The demo takes a suite of real handwritten digits that is part of the package: the primary task has 100 labelled images, five candidates are to be judged, one of them with shuffled labels.
It compares `auto` and two of the papers' methods with the controls, prints a table with intervals, cost and a verdict, and writes a page.
It takes about two minutes on two cores.""",
        "sidequest demo 2>/dev/null",
        lines=20,
        last=9,
    ),
    Step(
        """Open `runs/demo/report.html` in a browser: the same with figures, what each method saw, and the recipes.

## Look at a suite

`check` counts rows and labels, finds leaks between splits and tasks, and says what the best constant answer scores.""",
        "sidequest check digits 2>/dev/null",
        lines=11,
        last=1,
        cheap=True,
    ),
    Step(
        """`methods` lists every method with its needs and its cost in single-task training runs of the primary.""",
        "sidequest methods",
        lines=11,
        cheap=True,
    ),
    Step(
        """## Choose, train, predict

`select` lets one method decide, here `auto` with its smallest effort, and writes the decision to `runs/first/recipe.json`.""",
        "sidequest select digits -o runs/first --effort 1 2>/dev/null",
    ),
    Step(
        """`train` trains on the decision and evaluates on *report* once.
The model is in `runs/final/model`.""",
        "sidequest train runs/first -o runs/final 2>/dev/null",
    ),
)
ENDING = """
Every run can be stopped and started again with the same command; it continues where it was and ends in the same bytes.

## With your own files

The [tutorial](tutorial/index.md) goes from a csv to a verdict.
In Python:

```python
import sidequest as sq

selection = sq.select(sq.load_suite("digits"), "heu-type", directory="runs/python")
print(selection.recipe.auxiliaries)
```

`sq.compare(suite, ["auto"], seeds=5)` gives the table and the verdict, `selection.train()` a model that predicts.
"""


if __name__ == "__main__":
    PAGE.write_text(RECORDER["recorded"](STEPS) + ENDING, encoding="utf-8")
