"""Breaking lines of English, Japanese and Chinese."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from autograd_explain.render.prose import one_line
from autograd_explain.render.texts import line
from autograd_explain.render.wrap import wrap


def _lines(text: str, width: int) -> list[str]:
    return [part.plain for part in wrap(Text(text), width)]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 8, ["one two", "three"]),
        ("上書きされました。次", 16, ["上書きされまし", "た。次"]),
        ("これは「引用」です", 8, ["これは", "「引用」", "です"]),
        ("版本（一）和版本", 6, ["版本", "（一）", "和版本"]),
        ("tensor を保存", 8, ["tensor", "を保存"]),
        ("aaaaaaaaaa", 4, ["aaaa", "aaaa", "aa"]),
        ("a\n\nb", 9, ["a", "", "b"]),
        ("non-leaf, leaf", 9, ["non-leaf,", "leaf"]),
    ],
)
def test_breaks(text: str, width: int, lines: list[str]) -> None:
    assert _lines(text, width) == lines


def test_inline_code_stays_whole() -> None:
    text = one_line(line("type `%autograd_explain some_cause` to read more"))
    assert [t.plain for t in wrap(text, 34)] == [
        "type",
        "`%autograd_explain some_cause` to",
        "read more",
    ]


@given(st.text("ab 。、「（あ漢x.", max_size=60), st.integers(4, 30))
def test_nothing_is_lost_and_everything_fits(text: str, width: int) -> None:
    lines = _lines(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(part) <= width for part in lines)
