"""Labels: the same in three languages, and every reason that the stages give is known."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import autograd_explain
from autograd_explain.docs import words as pages
from autograd_explain.model import Outcome, Safety, What
from autograd_explain.render import look
from autograd_explain.render.fill import PLACEHOLDER
from autograd_explain.render.labels import LABELS, WORDS, label, word
from autograd_explain.render.lint import other_terms
from autograd_explain.render.reasons import REASONS
from autograd_explain.render.texts import LANGUAGES, parser
from autograd_explain.search import words as answers

_CODE = re.compile(r"`[^`]*`")
PACKAGE = Path(autograd_explain.__file__).parent


def test_languages_agree() -> None:
    for key, texts in LABELS.items():
        assert len(texts) == len(LANGUAGES) and all(texts), key
        assert len({frozenset(PLACEHOLDER.findall(t)) for t in texts}) == 1, key
        assert len({frozenset(_CODE.findall(t)) for t in texts}) == 1, key
        assert all(t.count("[") == t.count("]") for t in texts), key


def test_every_label_can_be_shown() -> None:
    each = (
        (key, *said) for key, texts in LABELS.items() for said in zip(LANGUAGES, texts, strict=True)
    )
    for key, language, text in each:
        facts = {name: "1" for name in PLACEHOLDER.findall(text)}
        assert not PLACEHOLDER.search(word(key, language, **facts)), key
        assert not PLACEHOLDER.search(word(key, language)), key
        assert word(key, language, **facts), key
        assert len(parser().parse(text)) == 3, key


def test_no_key_twice() -> None:
    assert not WORDS.keys() & REASONS.keys()


def test_model_values_have_labels() -> None:
    assert {f"outcome_{o.value}" for o in Outcome} <= LABELS.keys()
    assert {f"safety_{s.value}" for s in Safety if s is not Safety.SAME_GRADIENTS} <= LABELS.keys()
    assert {w.value for w in What} <= LABELS.keys()


def test_brackets_are_shown_only_when_known() -> None:
    assert word("changed", "en", before=1, version=2) == "overwrote it: version 1 → 2"
    assert word("changed", "en", version=2) == "overwrote it"
    assert word("saved", "en") == "saved"


def test_values_are_not_markdown() -> None:
    assert label("created", "en", name="__h__").html() == "created <code>__h__</code>"
    assert word("fails_with", "en", error="[x] {name} `y`") == "it stops with `[x] {name} `y``"


def test_unknown_keys_and_languages_show_something() -> None:
    assert word("some_new_reason", "en") == "some new reason"
    assert word("saved", "de") == "saved"


def _reasons() -> Iterator[tuple[str, set[str]]]:
    """Keys and names of values of every `Reason("key", {...})` in the package."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id != "Reason" or not node.args:
                continue
            key = node.args[0]
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, _names(node.args[1:2])


def _names(values: list[ast.expr]) -> set[str]:
    keys = values[0].keys if values and isinstance(values[0], ast.Dict) else []
    return {str(k.value) for k in keys if isinstance(k, ast.Constant)}


_CODES = {
    "no_reference": (r'why="(\w+)"', r'doubts\.add\("(\w+)"\)', r'return "(\w+_gradients?)"'),
    "limit": (r'limits\.add\("(\w+)"\)',),
}


@pytest.mark.parametrize("reason", _CODES)
def test_every_code_that_explains_a_reason_has_a_label(reason: str) -> None:
    sources = [
        p.read_text("utf-8") for s in ("verify", "record") for p in PACKAGE.glob(f"{s}/*.py")
    ]
    codes = {c for text in sources for pattern in _CODES[reason] for c in re.findall(pattern, text)}
    assert {f"{reason}_{code}" for code in codes - {reason}} <= LABELS.keys()


def test_every_reason_in_the_package_has_a_label() -> None:
    found = list(_reasons())
    assert found
    for key, names in found:
        assert key in LABELS, key
        assert names <= set(PLACEHOLDER.findall(LABELS[key][0])), (key, names)


@pytest.mark.parametrize(
    "words",
    [LABELS, look._WORDS, answers.WORDS, pages.WORDS],
    ids=["labels", "look", "search", "docs"],
)
def test_one_thing_has_one_name(words: Mapping[str, tuple[str, str, str]]) -> None:
    assert [
        f"{key}: {slip}"
        for key, texts in words.items()
        for language, text in zip(LANGUAGES, texts, strict=True)
        for slip in other_terms(text, language)
    ] == []


def test_another_name_is_noticed() -> None:
    assert list(other_terms("叶子节点", "zh")) == ["'叶子' instead of 叶子张量"]
    assert not list(other_terms("叶子张量", "zh")) and not list(other_terms("改写", "ja"))
