"""The Explanation as users and tools hold it: the contract, pickling, languages, mimebundle."""

from __future__ import annotations

import io
import json
import pickle
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograd_explain.model import (
    Certainty,
    Diagnosis,
    Event,
    Kind,
    Place,
    Relation,
    Span,
    What,
)
from autograd_explain.render import LANGUAGES, Explanation
from autograd_explain.render.explanation import texts_of
from autograd_explain.render.report import MIMETYPE
from autograd_explain.render.rows import rows_of
from autograd_explain.render.texts import read
from autograd_explain.render.timeline import stops_of
from autograd_explain.render.view import name_list

from .samples import (
    CLONE,
    MESSAGE,
    NEEDS,
    OLD,
    SAMPLES,
    SAVED,
    WRITE,
    culprit,
    explanation,
    facts,
    finding,
    overwritten,
)

_VOID = {"br", "img", "meta", "hr"}
_ALLOWED = {
    *(
        "section",
        "style",
        "div",
        "span",
        "table",
        "thead",
        "tbody",
        "tr",
        "td",
        "th",
        "pre",
        "code",
    ),
    *("svg", "path", "circle"),
    *("u", "i", "details", "summary", "p", "ul", "li", "a", "b", "br", "em", "strong"),
}


class Page(HTMLParser):
    """Collects text and tags, and complains about anything that is not ours or not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.shown = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _ALLOWED, tag
        assert not any(name.startswith("on") for name, _ in attrs)
        assert all((v or "").startswith("https://") for name, v in attrs if name == "href")
        self.tags.append(tag)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.shown += data


def test_contract() -> None:
    report = overwritten().to_dict()
    assert list(report) == [
        *("schema", "id", "kind", "confidence", "rank", "message", "language", "headline"),
        *("explanation", "tensors", "events", "rewrites", "warnings", "see", "notes"),
    ]
    assert report["schema"] == 1 and report["kind"] == "error" and report["language"] == "en"
    assert list(report["rewrites"][0]) == [
        *("title", "safety", "outcome", "outcome_reason", "reason", "edits"),
    ]
    assert list(report["rewrites"][0]["edits"][0]) == [
        *("cell", "file", "old_source", "new_source", "diff"),
    ]
    assert report["rewrites"][0]["title"] == "Write to a copy of `hidden`"
    assert [e["what"] for e in report["events"]] == ["saved", "changed", "failed"]
    assert list(report["events"][0]["place"]) == [
        *("cell", "file", "line", "source", "function", "span", "changed"),
    ]
    assert json.loads(json.dumps(report)) == report


def test_where_nothing_can_be_rewritten_the_explanation_says_what_to_check() -> None:
    assert "Which statement writes" in explanation(finding(NEEDS)).to_dict()["explanation"]
    assert "Which statement writes" not in overwritten().to_dict()["explanation"]


@pytest.mark.parametrize("name", SAMPLES)
def test_pickles(name: str) -> None:
    made = SAMPLES[name]()
    again = pickle.loads(pickle.dumps(made))
    assert again == made and again.to_dict() == made.to_dict()


def test_language_changes_words_and_nothing_else() -> None:
    english = overwritten()
    japanese = english.in_language("ja")
    assert japanese.diagnosis is english.diagnosis
    assert japanese.in_language("en") == english
    assert japanese.to_dict()["events"] == english.to_dict()["events"]
    assert "上書き" in japanese.headline


def test_texts_come_from_the_knowledge_folder_or_from_unknown() -> None:
    texts = texts_of("no_such_cause")
    assert texts == texts_of("unknown") and set(texts) == set(LANGUAGES)
    made = Explanation(explanation(finding(NEEDS, cause="no_such_cause")).diagnosis)
    assert made.to_dict()["headline"] == read(texts["en"]).summary({}).plain()


def test_mimebundle_is_complete_and_plain() -> None:
    bundle = overwritten()._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", MIMETYPE}
    assert "\x1b" not in bundle["text/plain"]
    for part in ("hidden += 1", "overwrote it: version 1 → 2", "verified", "%autograd_fix"):
        assert part in bundle["text/plain"]


def test_rewrites_with_one_title_are_told_apart() -> None:
    edits = [replace(CLONE.edits[0], new_source=OLD.replace("f(", new)) for new in ("g(", "h(")]
    titles = [
        rewrite["title"]
        for language in ("en", "zh")
        for rewrite in explanation(finding(), *(replace(CLONE, edits=(e,)) for e in edits))
        .in_language(language)
        .to_dict()["rewrites"]
    ]
    assert titles[0] == "Write to a copy of `hidden`: `out = g(hidden)`"
    assert titles[1] == "Write to a copy of `hidden`: `out = h(hidden)`"
    assert titles[2] == "写入 `hidden` 的副本：`out = g(hidden)`"


def test_repr_is_short() -> None:
    assert repr(overwritten()).startswith("<Explanation saved_value_overwritten: `hidden`")


def test_prints_in_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for terminal in (True, False):
        stream = io.StringIO()
        stream.isatty = lambda terminal=terminal: terminal  # type: ignore[method-assign, misc]
        overwritten().print(stream)
        assert ("\x1b[" in stream.getvalue()) is terminal
        assert "hidden += 1" in re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())


def test_streams_that_know_no_unicode() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="cp1252")
    overwritten().print(stream)
    stream.flush()
    assert b"overwrote it: version 1 -> 2" in raw.getvalue()


def test_a_printed_report_fits_any_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="cp1252", write_through=True))
    print(overwritten())
    assert b"overwrote it: version 1 -> 2" in raw.getvalue()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", SAMPLES)
def test_short_reports_fit_under_a_traceback(name: str, language: str) -> None:
    for width in (80, 100):
        lines = SAMPLES[name]().in_language(language).to_text(width).splitlines()
        assert len(lines) <= 32


def test_an_ordinary_report_is_short() -> None:
    assert len(overwritten().to_text(80).splitlines()) <= 25


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("detail", ["short", "full"])
def test_html_is_well_formed_and_accessible(name: str, detail: str) -> None:
    html = SAMPLES[name]().with_detail(detail).to_html()
    page = Page(html)
    assert "script" not in page.tags
    assert 'lang="en"' in html
    assert "prefers-color-scheme" not in html
    assert html.count("<details open>") == (html.count("<details") if detail == "full" else 0)


def test_html_marks_the_guilty_line() -> None:
    row = re.search(r"<div class=_guilty><pre>.*?</pre>", overwritten().to_html())
    assert row is not None
    marked = re.search("<u>(.*)</u>", row[0])
    assert marked is not None and re.sub("<.*?>", "", marked[1]) == "hidden += 1"


@pytest.mark.parametrize("kind", Kind)
def test_html_says_in_words_what_it_is_about(kind: Kind) -> None:
    page = Page(explanation(finding(SAVED, WRITE, NEEDS), CLONE, kind=kind).to_html())
    words = {"error": "error", "warning": "warning", "silent": "silent fault"}
    start = f"autograd_explain · {words.get(kind.value, 'worth a look')} ·"
    assert page.shown.strip().startswith(start)


@pytest.mark.parametrize("language", LANGUAGES)
def test_commands_fit_the_place(language: str) -> None:
    """Magics are of no use to a script; what has no command there is not told."""
    shown = {
        outside: explanation_of_unknown(outside).in_language(language).with_detail("full")
        for outside in (True, False)
    }
    assert "run --check" in shown[True].to_text(1000)
    assert "%" not in shown[True].to_text(1000).replace("100%", "")
    assert "`%%autograd_check`" in shown[False].to_markdown()
    assert "`%autograd_graph loss`" in shown[False].to_markdown()


def explanation_of_unknown(outside: bool) -> Explanation:
    found = finding(NEEDS, cause="unknown", facts={})
    return Explanation(Diagnosis(Kind.ERROR, MESSAGE, found, outside=outside))


def test_the_leaf_behind_a_result_is_not_called_that_result() -> None:
    leaf = replace(SAVED, what=What.CREATED, relation=Relation.LEAF, op=None)
    text = explanation(finding(leaf, WRITE, NEEDS)).to_text()
    assert "the leaf from which `hidden` is computed" in text and "created" not in text


@pytest.mark.parametrize("kind", Kind)
def test_text_says_it_too(kind: Kind) -> None:
    words = {"error": "error", "warning": "warning", "silent": "silent fault"}
    first = explanation(finding(SAVED, WRITE, NEEDS), CLONE, kind=kind).to_text(80).splitlines()[0]
    assert f" · {words.get(kind.value, 'worth a look')} ─" in first and len(first) == 80


def test_what_is_folded_is_announced() -> None:
    shown = explanation(finding(SAVED, WRITE, NEEDS), CLONE, CLONE, CLONE).to_html()
    assert "Other rewrites (2) · What to look at · These only silence it · Tensors" in shown
    assert "<code>%autograd_fix 2</code>" in shown


TEXT = st.text(max_size=40)
NAMES = st.one_of(
    TEXT, st.sampled_from(["[bold]x[/bold]", "</code>", "`", "**a**", "{write}", "重み"])
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(name=NAMES, source=TEXT, column=st.integers(-3, 60), language=st.sampled_from(LANGUAGES))
def test_nothing_of_the_users_breaks_out(
    name: str, source: str, column: int, language: str
) -> None:
    span = Span(4, column, 4, column + 5)
    place = Place(3, None, 4, source, None, span, 0)
    event = Event(What.CHANGED, place, name, 2)
    found = finding(event, NEEDS, tensor=culprit(name), facts=facts(name, source, source))
    made = explanation(found, CLONE, message=source).in_language(language)
    page = Page(made.to_html())
    assert "script" not in page.tags
    shown = made.to_text(80)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert made.with_detail("full").to_text(60)
    assert made.to_markdown()
    assert json.dumps(made.to_dict())


@pytest.mark.parametrize(("line", "order"), [(1, [1, 2, 4, 9]), (3, [2, 3, 4, 9])])
def test_an_alias_stands_where_the_program_has_it(line: int, order: list[int]) -> None:
    alias = Event(What.CREATED, Place(3, None, line, "alias = hidden.detach()"))
    alias = replace(alias, relation=Relation.ALIAS)
    shown = explanation(finding(SAVED, WRITE, alias, NEEDS), CLONE)
    numbers = [row.line for row in rows_of(shown.diagnosis, "en")]
    assert numbers == order


def test_that_every_line_is_inferred_is_said_once() -> None:
    shown = explanation(finding(SAVED, replace(WRITE, certainty=Certainty.INFERRED), NEEDS), CLONE)
    text = shown.to_text(80)
    assert "[inferred]" not in text
    assert text.count("inferred") == 1
    certainties = [event["certainty"] for event in shown.to_dict()["events"]]
    assert certainties == ["inferred", "inferred", "observed"]


def test_of_observed_and_inferred_lines_what_is_inferred_is_marked() -> None:
    seen = replace(SAVED, certainty=Certainty.OBSERVED)
    guessed = replace(WRITE, certainty=Certainty.INFERRED)
    text = explanation(finding(seen, guessed, NEEDS), CLONE).to_text(80)
    assert text.count("[inferred]") == 1 and "observed" not in text


def test_that_every_line_was_observed_is_said_once() -> None:
    seen = replace(SAVED, certainty=Certainty.OBSERVED)
    text = explanation(finding(seen, WRITE, NEEDS), CLONE).to_text(80)
    assert text.count("observed") == 1 and "inferred" not in text


def test_the_whole_story_does_not_point_to_itself() -> None:
    shown = explanation(finding(SAVED, WRITE, NEEDS), CLONE)
    assert "whole story" in shown.to_text(80)
    assert "whole story" not in shown.with_detail("full").to_text(80)


def test_a_write_stands_once_in_the_timeline() -> None:
    twice = finding(SAVED, WRITE, replace(WRITE, op="another name of it"), NEEDS)
    assert [stop.version for stop in stops_of(twice, "en")] == ["1", "2", "2 ≠ 1"]


def test_of_writes_that_were_not_counted_only_the_last_one_has_a_version() -> None:
    uncounted = replace(WRITE, version=None)
    elsewhere = replace(uncounted, place=NEEDS.place)
    stops = stops_of(finding(SAVED, uncounted, elsewhere, NEEDS), "en")
    assert [stop.version for stop in stops] == ["1", "?", "2", "2 ≠ 1"]


def test_a_list_of_names_is_cut_between_names() -> None:
    names = [f"policy.cell.long_name_{n}.weight.grad" for n in range(9)]
    assert name_list(names) == f"{names[0]}, {names[1]}, … (9)"
    assert name_list(["a", "b", "c"], 1) == "a, … (3)"
    assert name_list(["a", "b"], 0) == "a, b"
    assert name_list(["x" * 48, "y" * 50]) == f"{'x' * 48}, {'y' * 50}"
    assert name_list([]) == ""
