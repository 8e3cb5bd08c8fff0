"""The page of a run directory: what it says, in which order, and that nothing from data becomes markup."""

import csv
import json
import re
import shutil
from html.parser import HTMLParser

import pytest

from sidequest.errors import SettingsError
from sidequest.records.comparisons import Comparison, PrimariesTable, TableCell, TableRow
from sidequest.report.evidence import evidence_figures
from sidequest.report.page import read_page, render, write_page
from sidequest.report.tabulating import with_code
from tests.helpers.run_directories import ENDING, HOSTILE, TASKS, evidences, make_comparison, make_recipe, make_run

PLOTLY = re.compile(r'<script type="text/plain" id="plotly">[A-Za-z0-9+/=]*</script>')


class Elements(HTMLParser):
    """All elements with their attributes, and the text outside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements, self.text, self._raw = [], "", False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._raw = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._raw = False

    def handle_data(self, data):
        if not self._raw:
            self.text += data

    def ids(self, tag):
        return [attributes["id"] for name, attributes in self.elements if name == tag and "id" in attributes]


def page_of(directory) -> str:
    return PLOTLY.sub("", (directory / "report.html").read_text(encoding="utf-8"))


def test_the_order_is_verdict_comparison_cost_training_evidence_examples_recipe_data_provenance(comparison):
    found = Elements(page_of(comparison))
    assert found.ids("section") == [
        "verdict",
        "comparison",
        "cost",
        "training",
        "evidence",
        "examples",
        "recipe",
        "data",
        "provenance",
    ]
    assert "heu-size reaches 0.690 accuracy" in found.text
    assert "lies in [+0.070, +0.110]" in found.text
    assert "Worse than single: exp3s" in found.text
    assert f"sidequest compare '{HOSTILE}.yaml' -m heu-size" in found.text


def test_a_run_says_what_it_decided_and_scored(run):
    found = Elements(page_of(run))
    assert f"Train reviews with {HOSTILE} and plain." in found.text or f"with plain and {HOSTILE}" in found.text
    assert "accuracy 0.7000" in found.text
    assert "One run cannot say whether this helps" in found.text
    assert "15 of 30 rows" in found.text  # the instance subset
    assert '"method": "gradts-fg"' in found.text  # the recipe itself


@pytest.mark.parametrize("which", ["comparison", "run"])
def test_dataset_text_names_and_labels_are_text(which, request):
    page = page_of(request.getfixturevalue(which))
    found = Elements(page)
    own = [attributes for tag, attributes in found.elements if tag == "script"]
    assert own == [{"type": "application/json", "id": "figures"}, {}]
    assert not [attributes for tag, attributes in found.elements if "onerror" in attributes]
    pictures = [attributes["src"] for tag, attributes in found.elements if tag == "img"]
    assert all(source.startswith("data:image/png") for source in pictures)
    assert HOSTILE in found.text
    assert ENDING in found.text
    assert "alert(1)</script>" not in page
    assert "onerror=alert(2)>" not in page


def test_code_in_a_sentence_is_code_and_all_else_is_text():
    shown = with_code("`drop_overlap: true` of <b>, `<script>` and one ` alone")
    assert shown == "<code>drop_overlap: true</code> of &lt;b&gt;, <code>&lt;script&gt;</code> and one ` alone"


def test_warnings_show_code_as_code(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    facts = json.loads((copy / "record.json").read_text())
    problem = {
        "level": "warning",
        "task": "t",
        "split": "report",
        "message": "1 row. `drop_overlap: true` leaves it out",
    }
    facts["data"]["problems"] = [problem]
    del facts["sha256"]  # changed on purpose
    (copy / "record.json").write_text(json.dumps(facts))
    write_page(copy)
    assert "1 row. <code>drop_overlap: true</code> leaves it out" in page_of(copy)


def test_figures_carry_names_as_entities_that_plotly_shows_as_text(comparison):
    page = page_of(comparison)
    text = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL).group(1)
    assert "<" not in text
    figures = json.loads(text)
    names = [trace["name"] for trace in figures["exp3s-policy-over-time"]["data"]]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in names
    assert figures["scores"]["data"][0]["hovertemplate"].endswith("<extra></extra>")


@pytest.mark.parametrize("which", ["comparison", "run"])
def test_nothing_is_fetched(which, request):
    page = page_of(request.getfixturevalue(which))
    for tag, attributes in Elements(page).elements:
        for name in ("src", "href", "action", "data"):
            assert not (attributes.get(name) or "").startswith(("http", "//", "file")), (tag, attributes)
    assert "default-src 'none'" in page
    assert "@import" not in page
    assert "url(" not in page


def test_every_method_has_its_own_figures(comparison):
    page = read_page(comparison)
    names = {name for name, drawing in page.all_drawings.items() if drawing.figure is not None}
    assert {
        "scores",
        "cost",
        "heu-size-added",
        "exp3s-policy-over-time",
        "counterfactual-policies-tried",
        "alphavil-alphas",
        "alphavil-weights",
        "gradts-fg-tau",
        f"gradts-fg-heads-{HOSTILE}",
        "gradts-fg-row-taus",
        "similarity-rows",
        "similarity-rows-taken",
        "similarity-likeness",
        "similarity-features",
        "autosem-utilities",
        "autosem-surface",
        "autosem-slices",
    } <= names
    assert [drawing.note for drawing in page.all_drawings.values() if drawing.note] == []


def test_a_figure_that_cannot_be_drawn_is_a_note(tmp_path):
    broken = evidences()["gradts-fg"] | {"tau_between": {"names": ["only one"]}, "bins": "no bins"}
    directory = make_run(tmp_path / "run", evidence=broken)
    write_page(directory)
    text = Elements(page_of(directory)).text
    assert "This figure could not be drawn: evidence: tau_between.values: field required" in text
    assert "This figure could not be drawn: evidence: bins: input should be a valid tuple" in text
    drawn = {drawing.name: drawing.figure for drawing in evidence_figures(make_recipe("gradts-fg", broken))}
    assert drawn["head_similarity"] is None
    assert drawn[f"heads-{TASKS[0]}"] is not None


def test_evidence_of_an_unknown_shape_gives_no_page_without_a_verdict(tmp_path):
    directory = make_run(tmp_path / "run", evidence={"epochs": [3], "tasks": None, "candidates": [1], "stage2": "?"})
    write_page(directory)
    text = Elements(page_of(directory)).text
    assert "could not be drawn" in text
    assert "Train reviews with" in text


def test_tables_are_csv_with_the_numbers_in_full(comparison):
    rows = {row.method: row for row in Comparison.read(comparison).rows}
    with (comparison / "tables" / "comparison.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert {row["method"] for row in found} == set(rows)
    for row in found:
        for key in ("mean", "low", "high", "x"):
            assert float(row[key]) == getattr(rows[row["method"]], key)
        if (first := rows[row["method"]].to_baseline) is not None:
            assert float(row["difference"]) == first.mean
            assert (float(row["interval_low"]), float(row["interval_high"])) == first.interval
    assert [float(row["mean"]) for row in found] == sorted((row.mean for row in rows.values()), reverse=True)
    names = {path.stem for path in (comparison / "tables").iterdir()}
    assert names == set(read_page(comparison).tables)


def test_one_seed_shows_no_infinite_intervals(tmp_path):
    directory = make_comparison(tmp_path / "one", seeds=1)
    write_page(directory)
    found = Elements(page_of(directory))
    assert not re.search(r"\b(inf|nan|infinity)\b", found.text, re.IGNORECASE)
    assert "no difference can be told from noise" in found.text


def test_a_page_without_records_says_what_is_missing(tmp_path):
    directory = make_run(tmp_path / "run")
    for name in ("record.json", "examples.json", "run.json", "selection.json", "scores.json"):
        (directory / name).unlink()
    text = Elements(render(read_page(directory))).text
    assert "The run recorded no facts about its data" in text
    assert "The run recorded no rows" in text
    assert "The final model is not trained yet" in text


def test_the_same_directory_gives_the_same_page(run):
    assert render(read_page(run)) == render(read_page(run))


def test_what_is_no_run_directory_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="no such directory"):
        write_page(tmp_path / "nothing")
    with pytest.raises(SettingsError, match="nothing to report"):
        write_page(tmp_path)


def test_several_primaries_have_a_page_that_links_to_theirs(tmp_path):
    names = ["rte", HOSTILE]
    cell = TableCell(mean=0.6, half_interval=0.01, difference=0.1, verdict="helps", x=2.0)
    alone = cell.model_copy(update={"difference": 0.0, "verdict": "baseline"})
    worse = cell.model_copy(update={"difference": -0.2, "verdict": "hurts", "half_interval": float("nan")})
    PrimariesTable(
        metrics=dict.fromkeys(names, "accuracy"),
        verdicts=dict.fromkeys(names, "so so"),
        methods={
            "single": TableRow(cells=dict.fromkeys(names, alone), average=0.6),
            "heu-size": TableRow(cells={"rte": cell, HOSTILE: worse}, average=0.6),
        },
    ).write(tmp_path)
    (tmp_path / "rte").mkdir()
    (tmp_path / "rte" / "report.html").write_text("")
    write_page(tmp_path)
    found = Elements(page_of(tmp_path))
    assert "Auxiliary tasks help 1 of 2 primaries: rte." in found.text
    assert [attributes.get("href") for tag, attributes in found.elements if tag == "a"][-1] == "rte/report.html"
    assert f"{HOSTILE} (accuracy)" in found.text
    cells = read_page(tmp_path).drawings["differences"].figure.data[0]
    row = cells.z[list(cells.y).index("heu-size")]
    assert dict(zip(cells.x, row.tolist(), strict=True)) == {"rte": 0.1, HOSTILE: -0.2}
