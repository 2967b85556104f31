"""The panel of every kind of report by itself: widths, no styles, forced colours, axe."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from look import seen
from nbconvert import HTMLExporter
from playwright.sync_api import Browser, Page, expect
from render.samples import LOOKS, SAMPLES

from autograd_explain.render import LANGUAGES

WIDTHS = (840, 600, 480, 380)
#: Of every element that can be seen, the pixels that stick out of it or of the report.
_HIDDEN = """() => [...document.querySelectorAll('section.axg, section.axg *')].flatMap(e => {
  if (!e.checkVisibility()) return [];
  const whole = e.closest('section.axg').getBoundingClientRect();
  const inline = getComputedStyle(e).display.startsWith('inline');
  const within = inline ? 0 : e.scrollWidth - e.clientWidth;
  const hidden = Math.max(within, Math.round(e.getBoundingClientRect().right - whole.right));
  return hidden > 0 ? [`${hidden} px: ${e.className} ${e.textContent.slice(0, 60)}`] : [];
})"""
_CODE = """() => [...document.querySelectorAll('pre')].map(e => {
  const style = getComputedStyle(e);
  return [style.textAlign, style.fontFamily, style.whiteSpace, style.direction];
})"""

#: What each report's parts are drawn with.
_LOOK = """() => [...document.querySelectorAll('section.axg')].map(report =>
  [...report.querySelectorAll('*')].map(e => {
    const style = getComputedStyle(e);
    return [e.tagName, ...['color', 'backgroundColor', 'fontSize', 'fontWeight', 'display', 'fill',
      'margin', 'padding', 'border', 'textDecoration', 'lineHeight'].map(name => style[name])];
  }))"""

Shown = Callable[..., Page]


@pytest.fixture(scope="module")
def shown(browser: Browser) -> Iterator[Shown]:
    """A page with every kind of report, unfolded."""
    pages: list[Page] = []

    def show(language: str = "en", **options: object) -> Page:
        page = browser.new_page(**options)  # type: ignore[arg-type]
        pages.append(page)
        reports = [SAMPLES[name]().in_language(language).with_detail("full") for name in SAMPLES]
        looks = [replace(look, language=language) for look in LOOKS.values()]
        body = "<hr>".join(part.to_html() for part in (*reports, *looks))
        page.set_content(f"<title>t</title><main><h1>t</h1>{body}</main>")
        page.evaluate("l => { document.documentElement.lang = l }", language)
        return page

    yield show
    for page in pages:
        page.close()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_hidden_and_axe_finds_nothing(shown: Shown, language: str) -> None:
    page = shown(language)
    for width in WIDTHS:
        page.set_viewport_size({"width": width + 16, "height": 900})
        assert page.evaluate(_HIDDEN) == [], width
    found = Axe().run(page)
    assert found.response["violations"] == [], found.generate_report()


def test_labels_stand_beside_their_lines_where_there_is_room(shown: Shown) -> None:
    page = shown()
    row = page.locator("._rows > div").first
    below = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width + 16, "height": 900})
        code, label = (row.locator(part).bounding_box() for part in ("pre", "div"))
        assert code is not None and label is not None
        below.append(label["y"] >= code["y"] + code["height"])
    assert below[0] is False and below[-1] is True


def test_at_two_hundred_per_cent_nothing_is_hidden(shown: Shown) -> None:
    """Of a window of 1440 pixels: half as wide, each pixel four."""
    page = shown(device_scale_factor=2, viewport={"width": 720, "height": 450})
    assert page.evaluate("devicePixelRatio") == 2
    assert page.evaluate(_HIDDEN) == []
    label, code = (page.locator(f"._rows > div {part}").first for part in ("div", "pre"))
    expect(label).to_be_visible()
    expect(code).to_be_visible()


def test_reports_look_the_same_whatever_stands_beside_them(browser: Browser) -> None:
    """Each brings the rules that it needs, which hold in the whole page."""
    reports = [SAMPLES[name]().to_html() for name in ("drawn", "warning", "silent", "hostile")]
    reports += [LOOKS[name].to_html() for name in LOOKS]
    page = browser.new_page()
    looks = []
    for order in (reports, reports[::-1]):
        page.set_content("".join(order))
        found = page.evaluate(_LOOK)
        looks.append(found if order is reports else found[::-1])
    for number, report in enumerate(reports):
        page.set_content(report)
        assert page.evaluate(_LOOK) == [looks[0][number]] == [looks[1][number]]
    page.close()


def test_it_reads_well_without_styles(shown: Shown) -> None:
    """As GitHub and untrusted notebooks show it."""
    page = shown()
    styled = page.locator("section.axg").all_inner_texts()
    page.evaluate(
        "() => { document.querySelectorAll('style').forEach(e => e.remove());"
        "document.querySelectorAll('section *').forEach(e => {"
        " e.removeAttribute('style'); e.removeAttribute('class') }) }"
    )
    code = page.evaluate(_CODE)
    assert len(code) > 30
    for align, font, space, direction in code:
        assert align in ("start", "left") and direction == "ltr"
        assert "monospace" in font and space.startswith("pre")
    assert [text.split() for text in page.locator("section").all_inner_texts()] == [
        text.split() for text in styled
    ]
    assert "   hidden += 1" in page.locator("pre", has_text="hidden.clone()").first.inner_text()


@pytest.mark.parametrize("template", ["lab", "classic"])
def test_in_pages_that_nbconvert_makes(browser: Browser, template: str) -> None:
    reports = [SAMPLES[name]().with_detail("full") for name in ("drawn", "every_outcome")]
    bundles = [report._repr_mimebundle_() for report in reports]
    outputs = [nbformat.v4.new_output("display_data", bundle) for bundle in bundles]
    cell = nbformat.v4.new_code_cell("loss.backward()", outputs=outputs)
    book = nbformat.v4.new_notebook(cells=[cell])
    html, _ = HTMLExporter(template_name=template).from_notebook_node(book)
    page = browser.new_page()
    page.route(re.compile("^http"), lambda route: route.abort())
    page.set_content(html, wait_until="domcontentloaded")
    for width in (1000, 480):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(_HIDDEN) == [], width
    found = [text for report in page.locator("section.axg").all() for text in seen(report)]
    assert len(found) > 60
    assert [text for text in found if text.contrast < 4.5 and text.text not in "●◆✗▸✓"] == []
    page.close()


def test_forced_colours_hide_nothing(shown: Shown) -> None:
    page = shown(forced_colors="active")
    found = [text for report in page.locator("section.axg").all() for text in seen(report)]
    assert len(found) > 300
    assert [text for text in found if text.contrast < 4.5] == []


def test_names_that_are_read_from_the_right_stay_apart(browser: Browser) -> None:
    from render.samples import facts, finding, place

    from autograd_explain.model import Diagnosis, Event, Kind, What
    from autograd_explain.render import Explanation

    line = place(1, 2, "שם[0] += 1")
    found = finding(Event(What.CHANGED, line, None, 2), facts=facts("שם", "שם[0] += 1"))
    texts = {"en": "---\ntitle: T\n---\n## summary\n`{write}` (2) wrote.\n\n## cause\nWhy.\n"}
    page = browser.new_page()
    page.set_content(Explanation(Diagnosis(Kind.ERROR, "m", found), texts=texts).to_html())
    named = page.locator("pre, section code", has_text="שם").all()
    assert len(named) == 2
    for code in named:
        expect(code).to_have_css("direction", "ltr")
        expect(code).to_have_css("unicode-bidi", re.compile("isolate"))
    page.close()
