"""The site is built from the knowledge folders; what is wrong with it is told."""

from __future__ import annotations

import importlib
import pickle
import shutil
from collections.abc import Iterable
from html import unescape
from pathlib import Path
from unittest import mock

import pytest
import warm

from autograd_explain.cli import main
from autograd_explain.docs import DocsSite, build
from autograd_explain.docs.guides import guides
from autograd_explain.docs.links import dead_links
from autograd_explain.docs.words import WORDS
from autograd_explain.knowledge.entry import BUILT_IN
from autograd_explain.model import Diagnosis
from autograd_explain.render.texts import LANGUAGES
from autograd_explain.search.causes import Cause, causes

# Cases are run: with all of them half a minute where nothing else runs, minutes on a busy machine.
pytestmark = pytest.mark.timeout(900)
#: Their cases are run in any case: a page is looked at; only another run shows the fault.
SHOWN = ("step_between_backwards", "silent_cut")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def left_out(request: pytest.FixtureRequest) -> frozenset[str]:
    """The cases that are not run; tests/knowledge runs every one, and tries its rewrites."""
    with_case = [c.name for c in causes().values() if (c.folder / "case.py").exists()]
    whole = request.config.getoption("--all-notebooks")
    return frozenset(with_case) - {*(with_case if whole else with_case[::10]), *SHOWN}


@pytest.fixture(scope="module")
def site(
    root: Path, left_out: frozenset[str], tmp_path_factory: pytest.TempPathFactory
) -> DocsSite:
    """The whole site; a page whose case is not run has no report."""

    def some(known: Iterable[Cause], verify: bool) -> dict[str, Diagnosis | None]:
        """As `played`, by one process that has loaded torch already."""
        chosen = [c for c in known if c.name not in left_out and (c.folder / "case.py").exists()]
        out = tmp_path_factory.mktemp("played") / "found.pickle"
        given = (out, "verify" if verify else "no-verify", *(c.folder for c in chosen))
        ended = warm.run("-m", "autograd_explain.docs.player", *given, folder=out.parent)
        assert ended.status == 0, ended.err
        return dict(pickle.loads(out.read_bytes()))

    with mock.patch.object(importlib.import_module(build.__module__), "played", some):
        return build(root, causes(), verify=False)


def test_nothing_is_wrong(site: DocsSite, left_out: frozenset[str]) -> None:
    not_run = {f"{name}: its case.py is not explained" for name in left_out}
    assert {*site.problems} == not_run


def test_a_page_for_every_cause_and_language(site: DocsSite, root: Path) -> None:
    for language in LANGUAGES:
        for name in ("index", "messages", "symptoms", *(f"causes/{cause}" for cause in causes())):
            page = (root / language / f"{name}.html").read_text("utf-8")
            assert f'<html lang="{language}">' in page
    html = list(root.rglob("*.html"))
    assert len(html) + 1 == site.pages  # and the style sheet
    assert len(html) == 1 + len(list(guides())) + len(LANGUAGES) * (3 + len(causes()))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_shows_program_report_and_repair(site: DocsSite, root: Path, language: str) -> None:
    page = (root / language / "causes" / f"{SHOWN[0]}.html").read_text("utf-8")
    assert '<section class="axg _error"' in page and "_rows" in page
    assert '<div class="diff">' in page and '<div class="highlight">' in page
    assert "<script" not in page and "<style" not in page
    for question in causes()[SHOWN[0]].document(language).questions:
        assert question in page


def test_reports_are_made_by_running_the_cases(
    site: DocsSite, root: Path, left_out: frozenset[str]
) -> None:
    with_case = [c.name for c in causes().values() if (c.folder / "case.py").exists()]
    assert len(with_case) - len(left_out) > 10
    for name in with_case:
        page = (root / "en" / "causes" / f"{name}.html").read_text("utf-8")
        assert ('id="shown"' in page) == (name not in left_out), name


def test_messages_and_questions_lead_to_their_pages(site: DocsSite, root: Path) -> None:
    messages = (root / "ja" / "messages.html").read_text("utf-8")
    assert "a leaf Variable that requires grad is being used in an in-place operation." in messages
    symptoms = unescape((root / "zh" / "symptoms.html").read_text("utf-8"))
    for cause in causes().values():
        assert f'href="causes/{cause.name}.html"' in symptoms
        assert all(str(q) in symptoms for q in cause.document("zh").questions[:1])


def test_the_guides_are_there(site: DocsSite, root: Path) -> None:
    assert "adding-a-cause" in {guide.name for guide in guides()}
    assert "<h1>" in (root / "adding-a-cause.html").read_text("utf-8")


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "there.html").write_text('<p id="part"></p>')
    (tmp_path / "page.html").write_text(
        '<a id="x" href="there.html#part"></a><a href="https://pytorch.org"></a><a href="#x"></a>'
        '<a href="there.html#gone"></a><a href="gone.html"></a><img src="no.png"><a href="//x"></a>'
        '<a href="http://x.org"></a><b id="x"></b>'
    )
    found = list(dead_links(tmp_path))
    assert [problem.partition(": ")[2] for problem in found] == [
        "an id stands twice",
        "dead link 'there.html#gone'",
        "dead link 'gone.html'",
        "dead link 'no.png'",
        "dead link '//x'",
        "dead link 'http://x.org'",
    ]


def test_a_cause_that_does_not_explain_its_case_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "own_rule"
    shutil.copytree(BUILT_IN / "leaf_written", folder)
    text = (folder / "ja.md").read_text("utf-8")
    (folder / "ja.md").write_text(text.replace("## warnings", "## warned"), "utf-8")
    (folder / "zh.md").unlink()
    known = {"own_rule": Cause("own_rule", folder)}
    monkeypatch.setattr("autograd_explain.cli.docs.causes", lambda extra: known)
    assert main(["docs", str(tmp_path / "out")]) == 1
    err = capsys.readouterr().err
    assert "own_rule: its case.py is explained as leaf_written" in err
    assert "own_rule: zh.md is missing" in err and "own_rule: ja.md: sections" in err


def test_every_word_is_said_in_three_languages() -> None:
    assert all(len(texts) == len(LANGUAGES) and all(texts) for texts in WORDS.values())
