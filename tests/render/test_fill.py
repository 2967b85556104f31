"""Facts in parsed Markdown: escaped, never parsed, and never missing on the screen."""

from __future__ import annotations

import pytest

from autograd_explain.render.texts import line, passage


def test_facts_are_not_markdown() -> None:
    filled = passage("`{a}` and {a}", {"a": "**self.__h__** [x](y) <b>"})
    assert filled.plain() == "`**self.__h__** [x](y) <b>` and **self.__h__** [x](y) <b>"
    assert "<strong>" not in filled.html() and "&lt;b&gt;" in filled.html()
    assert passage(filled.markdown()).plain() == filled.plain()


def test_facts_are_filled_once() -> None:
    assert line("{a} {b}", {"a": "{b}", "b": "1"}).plain() == "{b} 1"


def test_fences_are_left_alone() -> None:
    text = 'Look at `{a}`.\n\n```python\nprint(f"{a}")\n```'
    assert 'print(f"{a}")' in passage(text, {"a": "x"}).markdown()


@pytest.mark.parametrize("value", ["", "  ", None])
def test_a_sentence_without_its_fact_is_dropped(value: str | None) -> None:
    facts = {"a": "x"} if value is None else {"a": "x", "b": value}
    assert line("`{a}` is kept. `{b}` is not. This is.", facts).plain() == "`x` is kept. This is."
    assert line("`{a}` を保持します。`{b}` は違います。以上です。", facts).plain() == (
        "`x` を保持します。以上です。"
    )


def test_a_sentence_may_end_with_its_line() -> None:
    assert passage("This is kept.\n`{b}` is not.", {}).plain() == "This is kept."
    assert passage("これは残ります。\n`{b}` は消えます。", {}).plain() == "これは残ります。"


def test_a_sentence_ends_only_outside_emphasis() -> None:
    text = line("**First. {b}** still first. Second.", {})
    assert text.plain() == "Second."


def test_a_paragraph_or_item_without_its_facts_is_dropped() -> None:
    text = "{b} is gone.\n\nThis stays.\n\n- {b}\n- item"
    assert passage(text, {}).markdown() == "This stays.\n\n- item"


def test_a_block_never_vanishes() -> None:
    assert passage("`{b}` is unknown.", {}).markdown() == "`…` is unknown."


def test_a_line_without_its_facts_is_empty() -> None:
    assert not line("`{b}` is unknown", {})


def test_table_cells_stay() -> None:
    table = "| a | b |\n| --- | --- |\n| `{x}` | 1 |"
    assert "| `y` | 1 |" in passage(table, {"x": "y"}).markdown()
    assert passage(table, {}).html().count("<td>") == 2


def test_facts_are_one_line_and_not_endless() -> None:
    shown = line("`{a}`", {"a": "f(\n    x,\n)" + "y" * 500}).plain()
    assert shown.startswith("`f( x, )y") and len(shown) < 110 and shown.endswith("…`")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("テンソルを\n保存します", "テンソルを保存します"),
        ("保存します。\n`x` は", "保存します。`x` は"),
        ("値は\n`x` です", "値は `x` です"),
        ("the value\nis kept", "the value is kept"),
    ],
)
def test_line_breaks_of_the_source(source: str, shown: str) -> None:
    assert passage(source, {}).plain() == shown


def test_a_number_is_escaped_only_where_it_would_start_a_list() -> None:
    source = "It is at version\n{version}. Then\n{op} follows."
    shown = passage(source, {"version": "2", "op": "+"}).markdown()
    assert shown == "It is at version 2. Then + follows."
    first = passage("{version}. Version.", {"version": "2"})
    assert first.markdown() == "2\\. Version." and passage(first.markdown()).html() == first.html()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("h += 1  # shift it", "`h += 1`"),
        ("x['#'] = '# no'  # yes", "`x['#'] = '# no'`"),
        ("f(x  # open", "`f(x # open`"),
        ("# only", "`# only`"),
        ("a 'b # c", "`a 'b # c`"),
    ],
)
def test_a_fact_leaves_its_comment_behind(value: str, shown: str) -> None:
    assert line("`{x}`", {"x": value}).plain() == shown
