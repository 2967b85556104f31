"""The user's code as HTML: syntax in classes of one letter, the expression meant underlined.

Without its style sheet a line still reads as code with a part underlined; `mark` would not do, as
forced colours (Windows' contrast themes) hide its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any

from markupsafe import Markup

#: Pygments' kinds of token by the first words of their names; others stand as they are.
_CLASSES = {
    "Token.Keyword": "k",
    "Token.Operator.Word": "k",
    "Token.Literal.String": "s",
    "Token.Literal.Number": "n",
    "Token.Comment": "c",
}


def code_html(text: str, start: int = 0, end: int = 0) -> Markup:
    """A line of Python; the characters from `start` to `end` are underlined."""
    parts = {"before": "", "meant": "", "after": ""}
    for begin, kind, piece in _pieces(text, (start, end)):
        part = "before" if begin < start else "meant" if begin < end else "after"
        parts[part] += f'<span class="{kind}">{escape(piece)}</span>' if kind else escape(piece)
    meant = f"<u>{parts['meant']}</u>" if parts["meant"] else ""
    return Markup(parts["before"] + meant + parts["after"])


def _pieces(text: str, cuts: tuple[int, ...]) -> Iterator[tuple[int, str, str]]:
    """Stretches of one class, none across a cut: where each begins, its class, its text."""
    for begin, token, value in _lexer().get_tokens_unprocessed(text):
        kind = next((c for name, c in _CLASSES.items() if str(token).startswith(name)), "")
        inner = [cut for cut in cuts if begin < cut < begin + len(value)]
        for first, last in pairwise([begin, *inner, begin + len(value)]):
            yield first, kind, text[first:last]


@cache
def _lexer() -> Any:
    from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped, unused-ignore]

    return PythonLexer()
