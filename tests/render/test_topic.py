"""The whole story of a cause."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from autograd_explain.knowledge.entry import Entry
from autograd_explain.render import LANGUAGES, Topic, topic_of
from autograd_explain.render.topic_content import cells_of

from .samples import TEXTS
from .test_explanation import Page

CASE = "# %%\nimport torch\nhidden = torch.ones(2)\n# %%\n# 注释 <b>\nhidden += 1\n"


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    folder = tmp_path / "my_cause"
    folder.mkdir()
    for language, text in TEXTS.items():
        (folder / f"{language}.md").write_text(text, "utf-8")
    (folder / "case.py").write_text(CASE, "utf-8")
    (folder / "fixed.py").write_text(CASE.replace("+= 1", "= hidden + 1"), "utf-8")
    (folder / "diagnose.py").write_text(
        'EXAMPLE = {"tensor": "state", "write": "", "saver": "out = f(state)"}\n', "utf-8"
    )
    return topic_of(folder, Entry("my_cause", folder).example, messages=("is at version {}",))


@pytest.mark.parametrize("language", LANGUAGES)
def test_everything_is_told(topic: Topic, language: str) -> None:
    told = topic.in_language(language)
    for shown in (told.to_text(80), told.to_markdown(), Page(told.to_html()).shown):
        for part in (
            "state",
            "hidden += 1",
            "hidden = hidden + 1",
            ".data",
            ".clone()",
            "https://",
        ):
            assert part in shown or part == "https://"
    assert told.title in told.to_text()


def test_facts_without_a_value_show_their_name(topic: Topic) -> None:
    assert topic.summary.plain().startswith("`state` was overwritten by `write` after")


def test_an_unknown_place_in_brackets_is_left_out(tmp_path: Path) -> None:
    text = "---\ntitle: T\n---\n## summary\n`{a}` ({a_place}) met `{b}`（{b_place}）.\n"
    (tmp_path / "en.md").write_text(text, "utf-8")
    topic = topic_of(tmp_path, {"a": "x", "a_place": "In[1]:2", "b": "", "b_place": "?"})
    assert topic.summary.plain() == "`x` (In[1]:2) met `b`."


def test_parts_in_order(topic: Topic) -> None:
    keys = [part.key for part in topic.parts()]
    assert keys == [
        *("message", "cause", "case", "fixed", "fix clone", "fix detach"),
        *("check", "warnings", "background"),
    ]


def test_a_topic_without_programs(tmp_path: Path) -> None:
    (tmp_path / "en.md").write_text(TEXTS["en"], "utf-8")
    topic = topic_of(tmp_path, Entry("t", tmp_path).example)
    assert [p.key for p in topic.parts()][:2] == ["cause", "fix clone"]


def test_pickles(topic: Topic) -> None:
    assert pickle.loads(pickle.dumps(topic)) == topic


def test_cells() -> None:
    assert cells_of(CASE) == (
        "import torch\nhidden = torch.ones(2)",
        "# 注释 <b>\nhidden += 1",
    )
    assert cells_of("") == ()
