"""A failing notebook in a real JupyterLab: what the user sees, in light and dark themes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import nbformat
import pytest
from lab import Lab
from look import seen
from playwright.sync_api import Browser, Locator, Page, expect

CELLS = (
    "%load_ext autograd_explain\n%config AutogradExplain.language = '{language}'\nimport torch\n",
    "w = torch.randn(3, requires_grad=True)\n"
    "cfg = {{'<img src=x onerror=\"window.pwned=1\">': torch.sigmoid(w)}}\n"
    "mask = torch.tensor([True, False, True])\n"
    "def shift(gate):\n"
    "    gate[mask] = 0.5",
    "loss = torch.tanh(next(iter(cfg.values())) * 2).sum()\n"
    "shift(cfg['<img src=x onerror=\"window.pwned=1\">'])\n"
    "loss.backward()",
    "%%autograd_check\nhidden = torch.sigmoid(w)\nhidden += 0.1\nhidden.sum().backward()",
)
LABELS = {
    "en": ("saved", "overwrote it", "needs version"),
    "ja": ("保存", "上書き", "が必要だが"),
    "zh": ("保存了", "原地覆盖", "需要版本"),
}


FOUR_LINES = (
    "%load_ext autograd_explain\nimport torch\nw = torch.ones(3, requires_grad=True)",
    "hidden = torch.sigmoid(w)\nhidden += 0.1\nloss = hidden.sum()\nloss.backward()",
)

#: Parts wider than the report.
_STICKS_OUT = """report => [...report.querySelectorAll('*')].filter(e =>
  e.getBoundingClientRect().right > report.getBoundingClientRect().right + 1
).map(e => e.className.baseVal ?? e.className + ' ' + e.textContent.slice(0, 60))"""


def write(jupyter: Lab, name: str, texts: Iterable[str]) -> None:
    cells = [nbformat.v4.new_code_cell(text) for text in texts]
    book = nbformat.v4.new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, jupyter.folder / name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """In a plain run one language: test_panel draws every report in all of them."""
    if "ran" in metafunc.fixturenames:
        whole = metafunc.config.getoption("--all-notebooks")
        languages = [*LABELS] if whole else [*LABELS][:1]
        metafunc.parametrize("ran", languages, indirect=True, scope="module")


@pytest.fixture(scope="module")
def ran(request: pytest.FixtureRequest, jupyter: Lab, browser: Browser) -> Iterator[Page]:
    """The notebook in JupyterLab, every cell run."""
    language = request.param
    write(jupyter, f"{language}.ipynb", (text.format(language=language) for text in CELLS))
    page = browser.new_page(viewport={"width": 1000, "height": 2400})
    jupyter.open(page, f"{language}.ipynb")
    for number in range(len(CELLS)):
        jupyter.run(page, number)
    page.locator("section.axg").nth(1).wait_for(timeout=60_000)
    yield page
    page.close()


def reports(page: Page) -> list[Locator]:
    return page.locator("section.axg").all()


def language_of(page: Page) -> str:
    return str(reports(page)[0].get_attribute("lang"))


def test_headline_lines_and_diff(ran: Page) -> None:
    first, checked = reports(ran)
    expect(first.locator("._head")).to_contain_text("cfg['<img src=x onerror=")
    expect(checked.locator("._head")).to_contain_text("hidden")
    for report in (first, checked):
        rows = report.locator("._rows > div:not(._path)")
        assert rows.count() == 3
        assert report.locator("._rows svg circle").first.is_visible()
        for row, label in zip(rows.all(), LABELS[language_of(ran)], strict=True):
            expect(row).to_contain_text(label)
            assert row.is_visible()
        diff = report.locator("._diff").first
        assert diff.locator("._ins").count()
    assert checked.locator("._diff").first.locator("._del").count()
    expect(checked.locator("._ins").first).to_contain_text("hidden = hidden + 0.1")


def test_it_stands_under_the_traceback(ran: Page) -> None:
    for report in reports(ran):
        outputs = report.locator("xpath=ancestor::div[contains(@class,'jp-OutputArea-child')][1]")
        before = outputs.locator("xpath=preceding-sibling::div[1]")
        expect(before).to_contain_text("RuntimeError: one of the variables needed for gradient")


def test_headline_and_culprit_are_seen_without_scrolling(jupyter: Lab, browser: Browser) -> None:
    """Where a user looks after Shift+Enter, in a window of a common size."""
    write(jupyter, "fold.ipynb", FOUR_LINES)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    jupyter.open(page, "fold.ipynb")
    jupyter.run(page, 0)
    page.locator(".jp-CodeCell .cm-content").nth(1).click()
    page.keyboard.press("Shift+Enter")
    report = page.locator("section.axg")
    report.wait_for(timeout=60_000)
    for part in ("._head", "._guilty", "._needed"):
        expect(report.locator(part).first).to_be_in_viewport(ratio=1)
    page.close()


def test_it_fits_under_the_traceback(ran: Page) -> None:
    for report in reports(ran):
        box = report.bounding_box()
        assert box is not None and box["height"] < 640


def test_nothing_of_the_program_is_executed(ran: Page) -> None:
    assert ran.evaluate("typeof window.pwned") == "undefined"
    for report in reports(ran):
        assert report.locator("img, script, iframe").count() == 0
    expect(reports(ran)[0]).to_contain_text("gate[mask] = 0.5")


def test_more_unfolds(ran: Page) -> None:
    more = reports(ran)[1].locator("details").last
    inside = more.locator("li").first
    expect(inside).to_be_hidden()
    more.locator("summary").click()
    expect(inside).to_be_visible()
    more.locator("summary").click()


@pytest.mark.parametrize("width", [420, 720, 1000])
def test_nothing_sticks_out(ran: Page, width: int) -> None:
    ran.set_viewport_size({"width": width, "height": 2400})
    ran.wait_for_timeout(300)
    for report in reports(ran):
        assert report.evaluate(_STICKS_OUT) == []
    ran.set_viewport_size({"width": 1000, "height": 2400})


# The last test of a page: it opens the notebook anew, and its outputs are from the file then.
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_can_be_read(ran: Page, jupyter: Lab, theme: str) -> None:
    if theme == "dark":
        ran.keyboard.press("Control+s")
        saved = ran.locator(".jp-Toolbar, .jp-NotebookPanel").first
        saved.wait_for()
        ran.wait_for_timeout(1000)
        jupyter.open(ran, f"{language_of(ran)}.ipynb", theme)
        ran.locator("section.axg").nth(1).wait_for()
    for report in reports(ran):
        report.evaluate("e => e.querySelectorAll('details').forEach(d => { d.open = true })")
        texts = seen(report)
        assert len(texts) > 30
        assert [s for s in texts if s.contrast < 4.5 and s.text not in "●◆✗▸✓"] == []
        assert [s for s in texts if s.contrast < 3] == []


def test_untrusted_outputs_still_tell_everything(
    jupyter: Lab, browser: Browser, page: Page
) -> None:
    """Not run here: JupyterLab strips styles, and what would act."""
    write_untrusted(jupyter, "untrusted.ipynb")
    jupyter.open(page, "untrusted.ipynb")
    check_untrusted(page)


def test_in_notebook_7(notebook_7: Lab, browser: Browser) -> None:
    """The four lines once more, and outputs of somebody else."""
    write(notebook_7, "fold.ipynb", FOUR_LINES)
    write_untrusted(notebook_7, "untrusted.ipynb")
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{notebook_7.url}/notebooks/fold.ipynb?token={notebook_7.token}")
    page.locator(".jp-CodeCell .cm-content").nth(1).wait_for()
    notebook_7.run(page, 0)
    page.locator(".jp-CodeCell .cm-content").nth(1).click()
    page.keyboard.press("Shift+Enter")
    report = page.locator("section.axg")
    report.wait_for(timeout=60_000)
    for part in ("._head", "._guilty", "._needed"):
        expect(report.locator(part).first).to_be_in_viewport(ratio=1)
    for width in (720, 480):
        page.set_viewport_size({"width": width, "height": 900})
        assert report.evaluate(_STICKS_OUT) == []
    page.goto(f"{notebook_7.url}/notebooks/untrusted.ipynb?token={notebook_7.token}")
    check_untrusted(page)
    page.close()


def write_untrusted(jupyter: Lab, name: str) -> None:
    output = nbformat.v4.new_output(
        "display_data", {"text/html": _report(), "text/plain": "never needed"}
    )
    cell = nbformat.v4.new_code_cell("loss.backward()", outputs=[output], execution_count=1)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), jupyter.folder / name)


def check_untrusted(page: Page) -> None:
    shown = page.locator(".jp-OutputArea-output").first
    expect(shown).to_contain_text("w[mask]")
    expect(shown).to_contain_text("overwrote it")
    expect(shown).to_contain_text("+")
    assert shown.locator("style, script, img").count() == 0
    code = shown.locator("pre").first
    expect(code).to_have_css("text-align", "start")
    expect(code).to_have_css("font-family", re.compile("monospace"))
    expect(code).to_have_css("white-space", re.compile("^pre"))


def _report() -> str:
    from autograd_explain.model import Confidence, Diagnosis, Event, Finding, Kind, Place, What
    from autograd_explain.render import Explanation

    place = Place(1, None, 1, "w[mask] = '<img src=x onerror=pwned=1>'")
    events = (Event(What.CHANGED, place, None, 2), Event(What.FAILED, Place(1, None, 2, "+")))
    finding = Finding("c", Confidence.PROVEN, {"tensor": "w[mask]"}, events=events)
    texts = {"en": "---\ntitle: T\n---\n## summary\n`{tensor}` +.\n\n## cause\nWhy.\n"}
    return Explanation(Diagnosis(Kind.ERROR, "m", finding), texts=texts).to_html()
