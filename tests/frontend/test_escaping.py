"""Nothing that comes from the user's program is ever run or taken for markup by a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

from autograd_explain.model import (
    Certainty,
    Confidence,
    Diagnosis,
    Edit,
    Event,
    Finding,
    GraphLine,
    Kind,
    Outcome,
    Place,
    Reason,
    Rewrite,
    Role,
    Safety,
    TensorFact,
    What,
)
from autograd_explain.render import Explanation

_TEXTS = {
    "en": "---\ntitle: T\nquestions: [a]\n---\n## summary\n`{tensor}` and {tensor}.\n\n"
    "## cause\nThe *write* `{tensor}`, {tensor} [x](https://pytorch.org).\n\n"
    "## fix clone\nCopy {tensor}\nBecause `{tensor}`.\n\n## warnings\n- {tensor}\n"
}
_PIECES = (
    "<img src=x onerror=pwned=1>",
    "<svg onload=pwned=1>",
    "<script>pwned=1</script>",
    '"><b onmouseover="pwned=1">',
    "'><iframe srcdoc='<script>parent.pwned=1</script>'>",
    "[x](javascript:pwned=1)",
    "[bold]x[/bold]",
    "x[mask]",
    "{tensor}",
    "&lt;img src=x onerror=pwned=1&gt;",
    "</td></table></section>",
    "</style><style>*{display:none}",
    "<!--",
    "]]>",
    "`",
    "**",
    "\u202e",
    "\x00",
    "\x1b[31m",
    "$x^2$",
    "変数",
)
hostile = st.lists(st.sampled_from(_PIECES) | st.text(max_size=8), min_size=1, max_size=5).map(
    "".join
)
#: Elements and attributes that reports are made of.
_FOREIGN = """() => [...document.querySelectorAll('#report *')].flatMap(e => [
  ...('section style div span table tbody tr td pre code u details summary p ul li a b br em ' +
     'strong svg path circle i').split(' ').includes(e.localName) ? [] : [e.localName],
  ...[...e.attributes].filter(a => a.name.startsWith('on') || a.value.match(/^\\s*javascript:/i))
      .map(a => a.name + '=' + a.value)])"""


@pytest.fixture(scope="module")
def screen(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    page.set_content("<div id=report></div>")
    yield page
    page.close()


def _explanation(text: str) -> Explanation:
    place = Place(None, f"/tmp/{text}.py", 3, text)
    edit = Edit(None, f"/tmp/{text}.py", text, f"{text}\n{text}")
    fact = TensorFact(Role.CULPRIT, (text,), (2,), saved_version=1, current_version=2, grad_fn=text)
    events = (
        Event(What.SAVED, place, text, 1),
        Event(What.CHANGED, place, text, 2, Certainty.OBSERVED, (place,)),
        Event(What.FAILED, Place(3, None, 9, text)),
    )
    finding = Finding("c", Confidence.PROVEN, {"tensor": text}, (fact,), events)
    failed = Rewrite(
        "clone",
        (edit,),
        Safety.CHANGES_MEANING,
        outcome=Outcome.FAILS,
        reason=Reason("fails_with", {"error": text, "place": text}),
    )
    graph = (GraphLine(place, (), (text,)), GraphLine(Place(1, None, 2, text), (0,), (text,)))
    diagnosis = Diagnosis(Kind.ERROR, text, finding, (failed, failed), graph=graph)
    return Explanation(diagnosis, texts=_TEXTS)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=hostile, detail=st.sampled_from(("short", "full")))
def test_nothing_is_executed_or_taken_for_markup(screen: Page, text: str, detail: str) -> None:
    html = _explanation(text).with_detail(detail).to_html()
    screen.evaluate("html => { document.querySelector('#report').innerHTML = html }", html)
    assert screen.evaluate(_FOREIGN) == []
    assert screen.evaluate("typeof pwned") == "undefined"
    assert screen.evaluate("document.querySelectorAll('#report > *').length") == 1


def test_what_would_be_markup_is_shown_as_it_is(screen: Page) -> None:
    name = "cfg['<img src=x onerror=pwned=1>'][mask]"
    html = _explanation(name).to_html()
    screen.evaluate("html => { document.querySelector('#report').innerHTML = html }", html)
    assert name in screen.inner_text("._head")
    assert name in screen.inner_text("._rows")
    screen.wait_for_timeout(200)  # an image would have failed to load by now
    assert screen.evaluate("typeof pwned") == "undefined"
