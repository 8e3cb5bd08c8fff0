"""The page as a reader sees it: opened in a headless Chromium."""

import pytest

from tests.helpers.browser import Browser, has_browser
from tests.helpers.run_directories import ENDING, HOSTILE

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not has_browser(), reason="no Chromium or Chrome on the PATH"),
]

# Opens everything, then waits until each figure on the page has been drawn; a figure that never is runs into the limit.
DRAWN = """new Promise((resolve) => {
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
  let tries = 0;
  const look = () => {
    const places = [...document.querySelectorAll("[data-figure]")];
    const open = places.filter((place) => !place.querySelector("svg.main-svg, canvas"));
    if (!open.length || ++tries > 300) resolve({ all: places.length, open: open.map((place) => place.dataset.figure) });
    else setTimeout(look, 100);
  };
  look();
})"""
WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
# Elements that stick out of the window without a box around them that scrolls.
STICKING = """[...document.querySelectorAll("main *")].filter((element) =>
  element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".scroll, pre, .rows p, svg")
).map((element) => element.outerHTML.slice(0, 80))"""


# Tables that are wider than their place and do not say so.
SILENT = """[...document.querySelectorAll(".scroll")].filter((box) => box.scrollWidth > box.clientWidth + 1
  && getComputedStyle(box.nextElementSibling).display === "none").map((box) => box.getAttribute("aria-label"))"""
# The cells of the comparison's columns whose titles are given, as far as they are out of sight at first.
OUT_OF_SIGHT = """(titles) => {
  const table = document.querySelector(".table-comparison");
  const at = [...table.querySelectorAll("th")].map((cell) => cell.textContent);
  return [...table.querySelectorAll("tr")].flatMap((row) => titles.map((title) => row.children[at.indexOf(title)]))
    .filter((cell) => cell.getBoundingClientRect().right > innerWidth || !cell.clientWidth).map((cell) => cell.textContent);
}"""
# Code that lies under its own button to copy it.
UNDER_BUTTONS = """[...document.querySelectorAll(".copyable")].filter((box) => {
  const button = box.querySelector(".copy").getBoundingClientRect(), range = document.createRange();
  range.selectNodeContents(box.querySelector("pre"));
  return [...range.getClientRects()].some((line) => line.right > button.left && line.left < button.right
    && line.bottom > button.top && line.top < button.bottom);
}).map((box) => box.textContent.slice(0, 60))"""
# Pairs of texts of a figure that lie on each other, and texts that its edge cuts.
COLLISIONS = """(names) => names.flatMap((name) => {
  const place = document.querySelector(`[data-figure="${name}"]`);
  const kinds = ".xtick text, .ytick text, .xtitle, .ytitle, .legendtext, .textpoint text, .annotation-text";
  const texts = [...place.querySelectorAll(kinds)].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const edge = place.getBoundingClientRect();
  const cut = texts.filter(([, box]) => box.left < edge.left - 1 || box.right > edge.right + 1
    || box.top < edge.top - 1 || box.bottom > edge.bottom + 1).map(([text]) => `${name}: ${text} is cut`);
  const pairs = texts.flatMap(([one, a], index) => texts.slice(index + 1)
    .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2).map(([other]) => `${name}: ${one} / ${other}`));
  return [...cut, ...pairs];
})"""


# Titles of axes that begin or end outside of the page.
CUT_TITLES = """[...document.querySelectorAll('.xtitle, .ytitle')].filter((title) => {
  const box = title.getBoundingClientRect();
  return box.width && (box.left < 0 || box.right > document.documentElement.clientWidth);
}).map((title) => title.textContent)"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.mark.parametrize(
    ("which", "width", "dark"),
    [
        ("comparison", 375, True),
        ("run", 768, False),
        pytest.param("comparison", 768, False, marks=pytest.mark.slow),
        pytest.param("comparison", 1280, False, marks=pytest.mark.slow),
        pytest.param("run", 375, True, marks=pytest.mark.slow),
        pytest.param("run", 1280, False, marks=pytest.mark.slow),
    ],
)
def test_every_figure_is_drawn_without_errors_and_nothing_overflows(browser, request, which, width, dark):
    directory = request.getfixturevalue(which)
    browser.open(directory / "report.html", width=width, dark=dark)
    browser.evaluate("window.alert = (text) => console.error('alert: ' + text)")
    found = browser.evaluate(DRAWN)
    assert found["open"] == []
    assert found["all"] >= (20 if which == "comparison" else 6)
    assert browser.errors == []
    scroll, client = browser.evaluate(WIDTHS)
    assert client == width
    assert scroll <= client
    assert browser.evaluate(STICKING) == []
    assert browser.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    assert browser.evaluate(SILENT) == []
    assert browser.evaluate(CUT_TITLES) == []
    assert browser.evaluate(UNDER_BUTTONS) == []
    if which == "comparison":
        assert browser.evaluate(f"({OUT_OF_SIGHT})(['method', 'verdict', 'cost'])") == []
        assert browser.evaluate(f"({COLLISIONS})(['scores', 'cost', 'curves'])") == []


def test_the_checks_of_the_page_see_what_is_cut_and_what_collides(browser, comparison):
    """The control of the test above."""
    browser.open(comparison / "report.html", width=375)
    browser.evaluate(DRAWN)
    browser.evaluate("document.querySelector('style').append('.more { display: none !important; }')")
    assert "Comparison of methods" in browser.evaluate(SILENT)
    browser.evaluate("document.querySelector('style').append('.copy { right: auto !important; left: 20px; }')")
    assert browser.evaluate(UNDER_BUTTONS) != []
    assert browser.evaluate(f"({OUT_OF_SIGHT})(['against single'])") != []
    legend = "document.querySelector('[data-figure=cost] .legend').setAttribute('transform', 'translate(60, 200)')"
    browser.evaluate(legend)
    assert browser.evaluate(f"({COLLISIONS})(['cost'])") != []


def test_a_long_text_of_a_row_has_a_shadow_where_it_goes_on(browser, run):
    browser.open(run / "report.html", width=375)
    browser.evaluate(DRAWN)
    paint = (
        "(() => { const style = getComputedStyle(document.querySelector('.rows p')); return [style.backgroundAttachment, \
      style.backgroundSize]; })()"
    )
    attachment, size = browser.evaluate(paint)
    assert attachment.split(", ") == [
        "local",
        "local",
        "scroll",
        "scroll",
    ]  # the covers move with the text, the shadows do not
    assert len(size.split(", ")) == 4
    more = "(() => { const p = document.querySelector('.rows p'); p.textContent = 'many words '.repeat(200); \
      return p.scrollHeight > p.clientHeight; })()"
    assert browser.evaluate(more)


def test_a_script_in_a_dataset_is_shown_and_not_executed(browser, comparison, tmp_path):
    # In a copy whose first script listens: an alert while the page is read would be missed by anything later.
    page = (comparison / "report.html").read_text(encoding="utf-8")
    copy = tmp_path / "copy.html"
    copy.write_text(
        page.replace("<title>", "<script>alert = (t) => { document.alerted = t; };</script><title>", 1), "utf-8"
    )
    browser.open(copy, width=1400)
    browser.evaluate(DRAWN)
    assert browser.evaluate("document.alerted === undefined")
    text = browser.evaluate("document.body.innerText")
    assert HOSTILE in text
    assert ENDING in text
    assert browser.evaluate("document.querySelectorAll('img[onerror], main script').length") == 0
    # Names inside figures, too: legends and axes show the tag as it was written.
    figures = browser.evaluate("[...document.querySelectorAll('svg text')].map((text) => text.textContent)")
    assert any(HOSTILE in text for text in figures)


def test_the_theme_can_be_switched_and_the_recipe_copied(browser, run):
    browser.open(run / "report.html", width=1000)
    browser.evaluate(DRAWN)
    colour = "getComputedStyle(document.body).backgroundColor"
    before = browser.evaluate(colour)
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate(colour) != before
    browser.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    browser.evaluate("document.querySelector('[data-copies=recipe-text]').click()")
    assert browser.evaluate("window.copied") == (run / "recipe.json").read_text(encoding="utf-8")
    assert browser.errors == []


def test_a_csv_link_holds_the_table(browser, comparison):
    browser.open(comparison / "report.html")
    link = browser.evaluate("document.querySelector('a[download=\"comparison.csv\"]').href")
    found = browser.evaluate(f"atob({link.partition('base64,')[2]!r})")
    assert found == (comparison / "tables" / "comparison.csv").read_text(encoding="utf-8")


def test_errors_of_a_page_are_seen(browser, tmp_path):
    """The listener itself: without it the tests above would pass on a broken page."""
    page = tmp_path / "broken.html"
    page.write_text("<!doctype html><script>console.error('one'); missing();</script><img src='none.png'>")
    browser.open(page)
    assert any("one" in error for error in browser.errors)
    assert any("missing is not defined" in error for error in browser.errors)
