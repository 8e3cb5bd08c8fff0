"""A user's own network: the documented example runs, mistakes are told, exports run only code that the caller names."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import torch

from sidequest.errors import SettingsError
from sidequest.model_settings import CustomSettings
from sidequest.models import custom, load
from sidequest.models import family as make_family
from sidequest.tasks.suite import Suite
from sidequest.tasks.task import Form, Objective
from tests.helpers.sample_models import batch_of, make_task, stir

IMAGES = [make_task("digit", Form.IMAGE), make_task("ink", Form.IMAGE, Objective.REGRESSION)]
TEXTS = [
    make_task("one"),
    make_task("pair", Form.PAIR),
    make_task("choice", Form.CHOICES),
    make_task("tags", Form.TOKENS),
]

TEXT_NET = """
    import torch
    from torch import nn

    class Bag(nn.Module):
        width = 6

        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(400, 6)

        def forward(self, batch):
            states = self.table(batch["input_ids"]) * batch["attention_mask"][..., None]
            return states if "words" in batch else states.sum(1)

    def build(tasks):
        return Bag()
"""

WHOLE_MODEL = """
    from torch import nn
    from sidequest.models.base import MultiTaskModel

    class Whole(MultiTaskModel):
        def __init__(self, tasks):
            super().__init__()
            self.scores = nn.ModuleDict({t.name: nn.Linear(144, t.outputs) for t in tasks})

        def forward(self, task, batch):
            out = self.scores[task](batch["image"].flatten(1))
            return out[:, 0] if task == "ink" else out

    def build(tasks):
        return Whole(tasks)
"""


def write(path, code):
    path.write_text(textwrap.dedent(code))
    return path


def documented_example() -> str:
    """The code block of the module's docstring, which docs/models.md repeats."""
    doc = custom.__doc__
    block = doc[doc.index("# mynet.py") : doc.index("with `--set")]
    return textwrap.dedent("    " + block)


def custom_family(tasks, factory, **settings):
    return make_family(Suite.of(tasks[0], tasks[1:]), CustomSettings(factory=str(factory), **settings))


def test_the_documented_example_runs_and_round_trips(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mynet.py").write_text(documented_example())
    family = custom_family(IMAGES, "mynet.py:build")
    model = stir(family.build(0))
    for task in IMAGES:
        with torch.no_grad():
            live = model(task.name, batch_of(family, task))
        family.export(model, task, tmp_path / "m")
        with pytest.raises(SettingsError, match=r"'mynet\.py:build'.*factory="):
            load(tmp_path / "m")
        found = load(tmp_path / "m", factory="mynet.py:build").predict(task.train)
        if task.name == "ink":
            assert np.allclose(found.values, family.scales["ink"].restore(live.numpy()), atol=1e-4)
        else:
            assert np.allclose(found.probabilities, live.softmax(-1), atol=1e-6)


def test_texts_come_tokenised(tmp_path, encoders):
    path = write(tmp_path / "net.py", TEXT_NET)
    family = custom_family(TEXTS, f"{path}:build", encoder=str(encoders()))
    model = stir(family.build(0))
    for task in TEXTS:
        batch = batch_of(family, task)
        with torch.no_grad():
            live = model(task.name, batch)
        family.export(model, task, tmp_path / "m")
        found = load(tmp_path / "m", factory=f"{path}:build").predict(task.train)
        if task.name == "tags":
            assert np.allclose(np.concatenate(found.tag_probabilities), live.softmax(-1)[batch["words"]], atol=1e-6)
        else:
            assert np.allclose(found.probabilities, live.softmax(-1), atol=1e-6)


def test_a_whole_model_is_taken_as_it_is(tmp_path):
    path = write(tmp_path / "whole.py", WHOLE_MODEL)
    family = custom_family(IMAGES, f"{path}:build")
    model = stir(family.build(0))
    assert type(model).__name__ == "Whole"
    with torch.no_grad():
        live = model("digit", batch_of(family, IMAGES[0])).softmax(-1)
    family.export(model, IMAGES[0], tmp_path / "m")
    found = load(tmp_path / "m", factory=f"{path}:build").predict(IMAGES[0].train)
    assert np.allclose(found.probabilities, live, atol=1e-6)


def test_an_importable_module_is_found(tmp_path, monkeypatch, encoders):
    write(tmp_path / "installed_net.py", TEXT_NET)
    monkeypatch.syspath_prepend(tmp_path)
    assert custom_family(TEXTS, "installed_net:build", encoder=str(encoders())).build(0).width == 6


def test_a_file_is_looked_for_beside_the_suite(tmp_path, encoders):
    write(tmp_path / "net.py", TEXT_NET)
    suite = Suite.of(TEXTS[0], path=tmp_path / "suite.yaml")
    settings = CustomSettings(factory="net.py:build", encoder=str(encoders()))
    assert make_family(suite, settings).build(0).width == 6


def test_the_same_seed_gives_the_same_network(tmp_path, encoders):
    path = write(tmp_path / "net.py", TEXT_NET)
    family = custom_family(TEXTS, f"{path}:build", encoder=str(encoders()))
    first, second, other = (family.build(seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    assert not torch.equal(first["encoder.table.weight"], other["encoder.table.weight"])


def test_changed_code_changes_the_fingerprint(tmp_path):
    path = write(tmp_path / "whole.py", WHOLE_MODEL)
    before = custom_family(IMAGES, f"{path}:build").fingerprint()
    path.write_text(path.read_text() + "\n# changed\n")
    assert custom_family(IMAGES, f"{path}:build").fingerprint() != before


@pytest.mark.parametrize(
    ("code", "reference", "message"),
    [
        ("def build(tasks): return 3", "{}:build", "found int"),
        ("from torch import nn\ndef build(tasks): return nn.Linear(2, 2)", "{}:build", "whole number `width`"),
        ("def build(tasks): ...", "{}:make", "has no function 'make'"),
        ("def build(tasks) ...", "{}:build", "cannot be imported: SyntaxError"),
        ("", "{}", "file.py:function or package.module:function"),
        ("", "nowhere.py:build", r"no file 'nowhere\.py'"),
        ("", "no.such.module:build", "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_mistakes_are_told(code, reference, message, tmp_path):
    path = tmp_path / "net.py"
    path.write_text(code)
    with pytest.raises(SettingsError, match=message):
        custom_family(IMAGES, reference.format(path)).build(0)


def test_features_of_the_wrong_shape_are_told(tmp_path):
    code = "from torch import nn\nclass F(nn.Module):\n    width = 5\n    def forward(self, b): return b['image'].flatten(1)\n"
    path = write(tmp_path / "net.py", code + "def build(tasks): return F()")
    family = custom_family(IMAGES, f"{path}:build")
    with pytest.raises(SettingsError, match=r"\[n, width\] with width 5, found \[12, 144\]"):
        family.build(0)("digit", batch_of(family, IMAGES[0]))


def test_a_custom_model_needs_a_factory():
    with pytest.raises(SettingsError, match=r"needs model\.factory"):
        make_family(Suite.of(IMAGES[0]), CustomSettings())
