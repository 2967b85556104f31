"""Every knowledge folder: three complete languages that say the same."""

from __future__ import annotations

import html
from itertools import product
from pathlib import Path

import pytest

from autograd_explain.knowledge.entry import Entry, entries
from autograd_explain.render import Topic, topic_of
from autograd_explain.render.fill import PLACEHOLDER
from autograd_explain.render.lint import problems
from autograd_explain.render.texts import LANGUAGES, accept, document, load, passage

ENTRIES = list(entries().values())


def test_there_are_entries() -> None:
    assert "unknown" in entries()
    assert len(ENTRIES) > 1


@pytest.fixture(params=ENTRIES, ids=lambda entry: entry.name)
def entry(request: pytest.FixtureRequest) -> Entry:
    found: Entry = request.param
    return found


def test_texts_are_in_step(entry: Entry) -> None:
    assert problems(entry.folder, entry.example) == []


def test_example_fills_every_section(entry: Entry) -> None:
    facts = topic_of(entry.folder, entry.example).facts
    for language in LANGUAGES:
        text = document(load(entry.folder), language)
        for name, source in text.sections.items():
            shown = passage(source, facts).markdown()
            assert "…" not in shown.replace(source, ""), (language, name)
            assert not PLACEHOLDER.search(_without_fences(shown)), (language, name)


def test_missing_facts_never_show(entry: Entry) -> None:
    for language, missing in product(LANGUAGES, entry.example):
        text = document(load(entry.folder), language)
        facts = {k: v for k, v in entry.example.items() if k != missing}
        for variant in ("", *_variants(text.sections)):
            headline = text.summary(facts, variant).plain()
            assert headline and not PLACEHOLDER.search(headline)
            assert not PLACEHOLDER.search(text.passage("cause", facts, variant).markdown())


@pytest.mark.one_in(3)
def test_topic_can_be_shown(entry: Entry) -> None:
    for language in LANGUAGES:
        topic = topic_of(entry.folder, entry.example, language)
        assert isinstance(topic, Topic)
        for shown in (topic.to_text(), topic.to_html(), topic.to_markdown()):
            plain = html.unescape(shown).replace("`", "").replace("<code>", "")
            assert topic.title.replace("`", "")[:12] in plain


def _variants(sections: object) -> set[str]:
    names = [str(n) for n in sections]  # type: ignore[attr-defined]
    return {n.split(" ", 1)[1] for n in names if n.startswith(("summary ", "cause "))}


def _without_fences(text: str) -> str:
    return "".join(text.split("```")[::2])


# -- the lint itself can fail -----------------------------------------------------------

FRONT = "---\ntitle: {title}\nquestions: [a, b, c]\n{extra}---\n"
GOOD = {
    "en": FRONT.format(title="Title", extra="") + "## summary\n`{x}` is a leaf.\n\n"
    "## fix clone\nCopy it\nThe copy is `new`.\n",
    "ja": FRONT.format(title="題名", extra='english: ""\n') + "## summary\n`{x}` はリーフです。\n\n"
    "## fix clone\nコピーする\nコピーは `new` です。\n",
    "zh": FRONT.format(title="标题", extra='english: ""\n') + "## summary\n`{x}` 是叶子张量。\n\n"
    "## fix clone\n复制它\n副本是 `new`。\n",
}


def _folder(path: Path, **texts: str) -> Path:
    for language, text in {**GOOD, **texts}.items():
        (path / f"{language}.md").write_text(text, "utf-8")
    for language in ("ja", "zh"):
        accept(path, language)
    return path


def test_lint_accepts_a_clean_folder(tmp_path: Path) -> None:
    assert problems(_folder(tmp_path), {"x": "w"}) == []


@pytest.mark.parametrize(
    ("language", "old", "new", "complaint"),
    [
        ("en", "{x}", "{y}", "{y} is not in EXAMPLE"),
        ("ja", "`{x}` は", "`w` は", "placeholders differ"),
        ("ja", "`new`", "`old`", "inline code differ"),
        ("ja", "## fix clone", "## fix copy", "sections"),
        ("ja", "リーフです。", "**「葉」**です。", "literal **"),
        ("ja", "リーフです。", "リーフ です。", "space within CJK"),
        ("ja", "`{x}` は", "`{x}`は", "no space"),
        ("ja", "リーフです。", "リーフである。", "not polite: 'リーフである。'"),
        ("ja", "リーフです。", "リーフです: はい。", "half-width mark"),
        ("ja", "リーフです。", "葉です。", "'葉' instead of リーフ"),
        ("zh", "叶子张量。", "叶子张量, 对", "half-width mark"),
        ("zh", "叶子张量。", "叶子。", "'叶子' instead of 叶子张量"),
        ("zh", "是叶子张量。", "はリーフです。", "kana"),
        ("zh", "`{x}` 是叶子张量。", "`{x}` is a leaf.", "not translated"),
        ("en", "Copy it\n", "- Copy it\n", "title of the rewrite"),
        ("en", "Copy it\n", "Copy it.\n", "full stop"),
        ("en", "## fix clone", "## remedy", "no such section"),
        ("en", "[a, b, c]", "[a]", "questions"),
        ("en", "## summary", "## cause", "no `## summary`"),
    ],
)
def test_lint_finds(tmp_path: Path, language: str, old: str, new: str, complaint: str) -> None:
    assert old in GOOD[language]
    folder = _folder(tmp_path, **{language: GOOD[language].replace(old, new)})
    assert any(complaint in problem for problem in problems(folder, {"x": "w"}))


def test_lint_finds_a_changed_english_text(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "en.md").write_text(GOOD["en"] + "\nMore.\n", "utf-8")
    found = [p for p in problems(folder, {"x": "w"}) if "another en.md" in p]
    assert len(found) == 2
    assert accept(folder, "ja") and not accept(folder, "ja")
    assert len([p for p in problems(folder, {"x": "w"}) if "another en.md" in p]) == 1


def test_lint_finds_a_missing_language(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "zh.md").unlink()
    assert problems(folder, {"x": "w"}) == ["zh.md is missing"]
