"""Files of strangers: one test for each threat that SECURITY.md names."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import sidequest as sq
from sidequest.errors import SettingsError, masked
from sidequest.recipe import Phase, Recipe
from sidequest.report.page import write_page
from tests.helpers import ROOT
from tests.helpers.command_line import Ended, everything_in, run_command
from tests.helpers.good_inputs import write_images, write_texts

OWNED = "owned"
EVIL = f"""
from pathlib import Path
Path({OWNED!r}).write_text("a stranger's code has run")
def build(tasks):
    from torch import nn
    class Flat(nn.Module):
        width = 36
        def forward(self, batch):
            return batch["image"].flatten(1)
    return Flat()
"""
CUSTOM = {"kind": "custom", "factory": "evil.py:build"}


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path


@pytest.fixture
def stranger(place) -> Path:
    """A stranger's folder: a suite with code beside it."""
    write_images(place / "stranger", {"model": CUSTOM})
    (place / "stranger" / "evil.py").write_text(EVIL)
    return place / "stranger"


def has_run() -> bool:
    return Path(OWNED).exists()


def refuses_code(ended: Ended) -> None:
    assert ended.code == 2, ended.output
    assert "--allow-code" in ended.output, ended.output
    assert not has_run()


@pytest.mark.parametrize(
    "arguments",
    [
        ["select", "{suite}", "-m", "single", "-o", "out"],
        ["compare", "{suite}", "-m", "single", "--seeds", "1", "-o", "out"],
        ["oracle", "{suite}", "-o", "truth.json"],
        ["tune", "{suite}", "-o", "tuning.json"],
        ["select", "{suite}", "-m", "single", "-o", "out", "--dry-run"],
        ["select", "{suite}", "-m", "single", "-o", "out", "--set", "model.factory=mine.py:build", "--set", "x=1"],
    ],
    ids=["select", "compare", "oracle", "tune", "dry run", "another factory"],
)
def test_a_suite_alone_runs_no_code(arguments, stranger):
    ended = run_command(*(str(stranger / "suite.yaml") if part == "{suite}" else part for part in arguments))
    if "another factory" in str(arguments) or "model.factory=mine.py:build" in arguments:
        assert ended.code == 2
        assert not has_run()
    else:
        refuses_code(ended)
    assert everything_in(Path.cwd()) == {}


def test_what_only_reads_runs_no_code_at_all(stranger):
    assert run_command("check", stranger / "suite.yaml").code == 0
    assert not has_run()


@pytest.mark.parametrize("factory", ["evil.py:build", "../stranger/evil.py:build", "{absolute}:build"])
def test_a_recipe_or_run_directory_alone_runs_no_code(factory, stranger):
    factory = factory.replace("{absolute}", str(stranger / "evil.py"))
    plain = write_images(stranger.parent / "plain")
    recipe = Recipe(
        method="single",
        primary="main",
        phases=(Phase(shares={"main": 1}),),
        provenance={"model": {"kind": "custom", "factory": factory}},
    )
    recipe.write(stranger / "recipe.json")
    refuses_code(run_command("train", stranger / "recipe.json", "--suite", plain, "-o", "out"))
    run = {"version": 1, "method": "single", "facts": {}, "identity": "", "versions": {}, "suite_path": str(plain)}
    (stranger / "run.json").write_text(json.dumps(run))
    refuses_code(run_command("train", stranger, "-o", "out"))
    for command in (["show", stranger], ["report", stranger], ["export", stranger, "--to", "jsonl", "-o", "export"]):
        run_command(*command)
        assert not has_run()


def test_a_truth_table_alone_runs_no_code(stranger):
    plain = write_images(stranger.parent / "plain")
    assert run_command("oracle", plain, "--seeds", "2", "-o", "truth.json", "--workers", "1", seconds=120).code == 0
    table = json.loads(Path("truth.json").read_text())
    table.pop("sha256", None)
    table["model"] = {"kind": "custom", "factory": str(stranger / "evil.py") + ":build"}
    Path("truth.json").write_text(json.dumps(table))
    refuses_code(run_command("score", "-m", "single", "--truth", "truth.json", "--suite", plain))


def test_a_tuning_file_cannot_exchange_the_model(stranger):
    plain = write_images(stranger.parent / "plain")
    for name, value in (("model.factory", "evil.py:build"), ("model.kind", "custom"), ("model.encoder", "/")):
        Path("tuning.json").write_text(json.dumps({"version": 1, "chosen": {name: value}}))
        ended = run_command("select", plain, "-m", "single", "-o", "out", "--tune", "tuning.json")
        assert ended.code == 2, ended.output
        assert name in ended.output


def test_python_asks_for_consent_too(stranger):
    with pytest.raises(SettingsError, match="allow_code=True"):
        sq.select(str(stranger / "suite.yaml"), "single", directory="out", progress=False)
    with pytest.raises(SettingsError, match="allow_code=True"):
        sq.compare(sq.load_suite(str(stranger / "suite.yaml")), [], directory="out", progress=False)
    assert not has_run()


def test_code_runs_by_the_users_word(stranger):
    """The control: with consent the same files do run."""
    ended = run_command("select", stranger / "suite.yaml", "-m", "single", "-o", "out", "--allow-code", seconds=120)
    assert ended.code == 0, ended.output
    assert has_run()


def test_naming_the_function_is_consent_and_the_working_directory_comes_first(stranger):
    """The user's own file, not one of the same name beside a stranger's suite."""
    Path("evil.py").write_text(EVIL.replace(OWNED, "mine"))
    arguments = ["--set", "model.kind=custom", "--set", "model.factory=evil.py:build"]
    ended = run_command("select", stranger / "suite.yaml", "-m", "single", "-o", "out", *arguments, seconds=120)
    assert ended.code == 0, ended.output
    assert Path("mine").exists()
    assert not has_run()


def test_pickles_are_never_read(place):
    """Row ids and weights that are pickles: refused, and what is in them does not run."""
    suite = write_images(place / "plain")
    trap = b"cos\nsystem\n(S'touch " + OWNED.encode() + b"'\ntR."
    recipe = Recipe(method="single", primary="main", phases=(Phase(shares={"main": 1}),)).model_dump(mode="json")
    recipe["phases"][0]["subsets"] = {"main": {"file": "rows.npy", "rows": 3}}
    Path("recipe.json").write_text(json.dumps(recipe))
    Path("rows.npy").write_bytes(trap)
    assert run_command("train", "recipe.json", "--suite", suite, "-o", "out").code == 2
    with Path("rows.npy").open("wb") as file:
        np.save(file, np.array([pickle.dumps(1)], dtype=object), allow_pickle=True)
    assert run_command("train", "recipe.json", "--suite", suite, "-o", "out").code == 2
    encoder = place / "encoder"
    encoder.mkdir()
    (encoder / "config.json").write_text('{"model_type": "bert"}')
    (encoder / "pytorch_model.bin").write_bytes(trap)
    texts = write_texts(place / "texts")
    ended = run_command("select", texts, "-m", "single", "-o", "out", "--model", "pooled", "--encoder", encoder)
    assert ended.code == 2
    assert "safetensors" in ended.output
    assert not has_run()


def test_an_exported_model_reads_nothing_outside_its_directory(place):
    suite = write_texts(place / "texts")
    outside = place / "outside"
    outside.mkdir()
    task = {
        "name": "t",
        "objective": "classification",
        "form": "text",
        "labels": ["a", "b"],
        "metrics": ["accuracy"],
        "columns": ["text"],
        "inputs": {"columns": {"text": "text"}},
    }
    for encoder in (str(outside), "../outside", "link"):
        model = place / "model"
        model.mkdir(exist_ok=True)
        if encoder == "link":
            (model / "link").symlink_to(outside)
        card = {"version": 2, "sidequest": "0", "loads_with": "", "task": task}
        card["model"] = {"kind": "pooled", "encoder": encoder}
        (model / "sidequest.json").write_text(json.dumps(card))
        (model / "model.safetensors").write_bytes(b"")
        ended = run_command("predict", model, suite.parent / "reviews.csv")
        assert ended.code == 2, ended.output
        assert "brings its encoder" in ended.output, ended.output


def test_a_link_in_a_model_directory_is_not_sent_to_a_hub(place, monkeypatch):
    """Without the link the same directory would be sent."""
    monkeypatch.setattr("sidequest.runs.pushing.check_weights", lambda *_: None)
    monkeypatch.setattr("sidequest.runs.pushing.ModelCard.read_from", lambda *_: None)
    (place / "secret.txt").write_text("mine")
    model = place / "model"
    (model / "deep").mkdir(parents=True)
    (model / "README.md").write_text("a card")
    sent = run_command("push", model, "me/x", "--dry-run")
    assert sent.code == 0, sent.output
    for name, target in (("notes.txt", place / "secret.txt"), ("deep/folder", place)):
        (model / name).symlink_to(target)
        ended = run_command("push", model, "me/x", "--dry-run")
        assert ended.code == 2, ended.output
        assert f"{name}: is a symbolic link" in ended.output
        (model / name).unlink()


def test_row_ids_come_from_beside_the_recipe(place):
    suite = write_images(place / "plain")
    np.save(place / "secret.npy", np.arange(3))
    for name in ("../secret.npy", str(place / "secret.npy"), "link.npy"):
        recipe = Recipe(method="single", primary="main", phases=(Phase(shares={"main": 1}),)).model_dump(mode="json")
        recipe["phases"][0]["subsets"] = {"main": {"file": name, "rows": 3}}
        Path("recipe.json").write_text(json.dumps(recipe))
        if name == "link.npy":
            Path(name).symlink_to(place / "secret.npy")
        ended = run_command("train", "recipe.json", "--suite", suite, "-o", "out")
        assert ended.code == 2, ended.output


def test_a_suites_name_is_no_path(place):
    suite = write_images(place / "plain", {"suite": "../../escaped"})
    assert run_command("check", suite).code == 2


def test_links_planted_in_an_output_are_not_followed(place):
    suite = write_images(place / "plain")
    target = place / "precious"
    target.write_text("precious")
    Path("out").mkdir()
    for name in ("trials.log", "recipe.json", "report.html"):
        Path("out", name).symlink_to(target)
        ended = run_command("select", suite, "-m", "heu-size", "-o", "out", seconds=60)
        assert ended.code == 2, ended.output
        assert target.read_text() == "precious"
        Path("out", name).unlink()


SECRET = "s3cr3t-value"


def test_variables_reach_no_record_page_or_message(place, monkeypatch):
    monkeypatch.setenv("STOLEN", SECRET)
    fields = {"suite": "${STOLEN}", "primary": "${STOLEN}", "goal": "${STOLEN}", "seed": "${STOLEN}"}
    for field, value in fields.items():
        suite = write_images(place / f"of-{field}", {field: value})
        ended = run_command("check", suite)
        assert ended.code == 2
        assert SECRET not in ended.output
    suite = write_images(place / "plain")
    written = yaml.safe_load(suite.read_text())
    written["tasks"]["main"]["kind"] = "${STOLEN}"
    suite.write_text(yaml.safe_dump(written))
    ended = run_command("check", suite)
    assert ended.code == 2
    assert SECRET not in ended.output


def test_passwords_of_urls_reach_no_record_page_or_message(place):
    suite = write_images(place / "plain")
    bad = run_command("select", suite, "-m", "heu-size", "-o", "out", "--storage", f"mysq://me:{SECRET}@host/db")
    assert bad.code == 2
    assert SECRET not in bad.output
    good = f"sqlite:///trials.db?password={SECRET}"
    ended = run_command("select", suite, "-m", "heu-size", "-o", "out", "--storage", good, seconds=120)
    assert SECRET not in ended.output
    for path in Path("out").rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path
    assert masked("postgresql://me:pa/ss@host/db") == "postgresql://me:***@host/db"


def test_a_small_file_cannot_fill_the_memory(place):
    """What a header promises is compared with what is there before anything is made of it."""
    import gzip

    import pyarrow as pa
    import pyarrow.parquet as pq

    from tests.broken.test_readers import header
    from tests.broken.test_recipes import promise

    folder = place / "bombs"
    folder.mkdir()
    (folder / "images").write_bytes(header(2**31, 2**15, 2**15))
    (folder / "labels").write_bytes(header(2**31))
    (folder / "rows.npy").write_bytes(promise(10**11))
    (folder / "zeros.csv.gz").write_bytes(gzip.compress(bytes(2**28 + 2**20)))
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10, np.int32)), pa.array(["x"]))
    pq.write_table(pa.table({"text": column, "label": column}), folder / "few.parquet")
    tasks = {
        "a": {"objective": "classification", "train": {"image": "images", "label": "labels"}},
        "b": {"objective": "classification", "train": "zeros.csv.gz", "text": "x", "label": "y"},
    }
    (folder / "suite.yaml").write_text(yaml.safe_dump({"primary": "a", "tasks": tasks}))
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2100, np.int32)), pa.array(["x" * 2**20]))
    label = pa.array(["a", "b"] * 1050)
    pq.write_table(pa.table({"text": text, "label": label}), folder / "long.parquet", compression="zstd")
    lists = pa.array([["x" * 2**20] * 30] * 5)
    pq.write_table(pa.concat_tables([pa.table({"c": lists})] * 15), folder / "lists.parquet", compression="zstd")
    for name, file in (("c", "long.parquet"), ("d", "lists.parquet")):
        assert (folder / file).stat().st_size < 200_000
        tasks[name] = {"objective": "classification", "train": file, "text": "text", "label": "label"}
    (folder / "suite.yaml").write_text(yaml.safe_dump({"primary": "a", "tasks": tasks}))
    ended = run_command("check", folder / "suite.yaml", seconds=60)
    assert ended.code == 2
    assert "promises" in ended.output
    assert ended.output.count("unpack to more than") == 3


def test_arrays_of_zeros_cannot_fill_the_memory(place):
    """The predictions of a stranger's comparison. Few zeros are read."""
    from sidequest.errors import Damaged
    from sidequest.files import read_npz

    np.savez_compressed("few.npz", a=np.zeros(10**6, np.uint8))
    assert len(read_npz(Path("few.npz"), must_be_sealed=False)["a"]) == 10**6
    np.savez_compressed("many.npz", a=np.zeros(2**28 + 1, np.uint8))
    assert Path("many.npz").stat().st_size < 10**6
    with pytest.raises(Damaged, match="unpacks to more than"):
        read_npz(Path("many.npz"), must_be_sealed=False)


MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"


class Scripts(html.parser.HTMLParser):
    """Everything in a page that a browser would run or fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = ""
        self.running: list[str] = []
        self.strange: list[str] = []

    def handle_starttag(self, tag, attributes):
        facts = dict(attributes)
        self.inside = tag if tag == "script" and facts.get("type") in (None, "text/javascript", "module") else ""
        for name, value in facts.items():
            if name.startswith("on") or (name in ("src", "href") and not re.match(r"data:|#|[\w./-]+$", value or "")):
                self.strange.append(f"<{tag} {name}={value!r}>")

    def handle_data(self, data):
        if self.inside == "script" and data.strip():
            self.running.append(data)
            self.inside = ""


def test_the_page_shows_everything_as_text(place):
    """A recipe full of markup: nothing of it runs, and the policy of the page lets one script run, by its digest."""
    recipe = Recipe(
        method=MARKUP,
        primary=MARKUP,
        phases=(Phase(shares={MARKUP: 1, "b": 1}),),
        evidence={"notes": [MARKUP], "ranking": [MARKUP], "select_scores": [1.0]},
        provenance={"model": {"kind": MARKUP}, "suite": MARKUP, "rows": {MARKUP: {"train": 3}}},
        verdict=MARKUP,
    )
    recipe.write(place / "run" / "recipe.json")
    facts = {"version": 1, "commands": {MARKUP: MARKUP}, "machine": {MARKUP: MARKUP}, "versions": {MARKUP: MARKUP}}
    facts["data"] = {"problems": [{"message": MARKUP, "task": MARKUP}], "tasks": {MARKUP: {"notes": [MARKUP]}}}
    (place / "run" / "record.json").write_text(json.dumps(facts))
    text = write_page(place / "run").read_text(encoding="utf-8")
    found = Scripts()
    found.feed(text)
    assert len(found.running) == 1
    assert found.strange == []
    assert "<img src=x" not in text
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    digest = base64.b64encode(hashlib.sha256(found.running[0].encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in html.unescape(policy)
    assert "blob:" not in policy.partition("script-src")[2].partition(";")[0]


def test_rows_shown_on_a_terminal_are_plain_text(place):
    from sidequest.cli.show import plain

    assert plain("a\x1b[31mred\x07\u202e") == "a\\x1b[31mred\\x07\\u202e"


def test_a_saved_dataset_reads_nothing_outside_its_directory(place):
    """Where the same rows lie inside it, they are read."""
    datasets = pytest.importorskip("datasets")
    rows = {"text": [f"row {i}" for i in range(40)], "label": ["up", "down"] * 20}
    datasets.Dataset.from_dict(rows).save_to_disk("mine")
    datasets.Dataset.from_dict(rows).save_to_disk("given")
    task = {"objective": "classification", "train": "given", "text": "text", "label": "label"}
    Path("suite.yaml").write_text(yaml.safe_dump({"primary": "main", "tasks": {"main": task}}))
    assert run_command("check", "suite.yaml").code == 0
    (rows_file,) = Path("mine").glob("*.arrow")
    state = json.loads(Path("given/state.json").read_text())
    for name in (f"../mine/{rows_file.name}", str(rows_file.resolve())):
        Path("given/state.json").write_text(json.dumps({**state, "_data_files": [{"filename": name}]}))
        ended = run_command("check", "suite.yaml")
        assert ended.code == 2, ended.output
        assert "names files beside it" in ended.output


ESCAPES = "a\x1b[31mred\x1b[2J\x9b2K\u202e"


def speaks(text: str) -> bool:
    return any(letter in text for letter in "\x1b\x9b\u202e")


@pytest.mark.parametrize("command", ["show", "train"])
@pytest.mark.parametrize("field", ["method", "verdict", "primary", "a field", "a task", "a kind", "a file of rows"])
def test_names_in_a_recipe_do_not_speak_to_the_terminal(field, command, place):
    suite = write_images(place / "plain")
    recipe = Recipe(method="single", primary="main", phases=(Phase(shares={"main": 1}),)).model_dump(mode="json")
    changes = {
        "a field": {ESCAPES: 1},
        "a task": {"phases": [{"shares": {"main": 1, ESCAPES: 1}}]},
        "a kind": {"provenance": {"model": {"kind": ESCAPES}}},
        "a file of rows": {"phases": [{"shares": {"main": 1}, "subsets": {"main": {"file": ESCAPES}}}]},
    }
    Path("recipe.json").write_text(json.dumps({**recipe, **changes.get(field, {field: ESCAPES})}))
    dry = ["-o", "out", "--dry-run"] if command == "train" else []
    ended = run_command(command, "recipe.json", "--suite", suite, *dry, seconds=60)
    assert not ended.raw, ended.output
    assert not speaks(ended.output), ended.output
    if command == "show" or field not in ("method", "verdict"):
        assert "a\\x1b[31mred" in ended.output  # it is shown, by its codes


@pytest.mark.parametrize("changes", [{}, {"text": ESCAPES}, {"labels": [ESCAPES, "down"]}, {"train": f"{ESCAPES}.csv"}])
def test_names_in_data_do_not_speak_to_the_terminal(changes, place):
    rows = "".join(f"{ESCAPES} {i},{label}\n" for i in range(30) for label in (f"up{ESCAPES}", "down"))
    Path("rows.csv").write_text(f"text,label\n{rows}once more,dwon\n", encoding="utf-8")
    task = {"objective": "classification", "train": "rows.csv", "text": "text", "label": "label", **changes}
    Path("suite.yaml").write_text(yaml.safe_dump({"primary": "main", "tasks": {"main": task}}))
    ended = run_command("check", "suite.yaml", "--rows")
    assert not ended.raw, ended.output
    assert not speaks(ended.output), ended.output
    assert "\\x1b[31mred" in ended.output


def test_predictions_on_a_terminal_are_plain_text(monkeypatch):
    """For a program that reads on they are as they are."""
    import io

    from sidequest.cli.printing import print_data

    for terminal in (True, False):
        out = io.StringIO()
        monkeypatch.setattr(out, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setattr("sys.stdout", out)
        print_data(f"text\n{ESCAPES}\n")
        assert speaks(out.getvalue()) is not terminal
        assert out.getvalue().endswith("\n")


def test_every_threat_has_its_test():
    """SECURITY.md names a test for each threat, and each of them is here."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    here = {name for name in globals() if name.startswith("test_")}
    assert named <= here
    assert here - named <= {"test_every_threat_has_its_test"}
