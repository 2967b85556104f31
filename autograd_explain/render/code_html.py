"""The user's code as HTML: syntax in classes of one letter, the expression meant underlined.

Without its style sheet a line still reads as code with a part underlined; `mark` would not do, as
forced colours (Windows' contrast themes) hide its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html import escape
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from markupsafe import Markup

#: Pygments' kinds of token by the first words of their names; others stand as they are.
_CLASSES = {
    "Token.Keyword": "k",
    "Token.Operator.Word": "k",
    "Token.Literal.String": "s",
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
    starts = [next(run) for _, run in groupby(_classes(text), key=itemgetter(1))]
    ends = [*(begin for begin, _ in starts[1:]), len(text)]
    for (begin, kind), end in zip(starts, ends, strict=False):  # no start in no text
        inner = [cut for cut in cuts if begin < cut < end]
        for first, last in pairwise([begin, *inner, end]):
            yield first, kind, text[first:last]


def _classes(text: str) -> Iterator[tuple[int, str]]:
    """Where each token begins, and its class."""
    for begin, token, _ in _lexer().get_tokens_unprocessed(text):
        yield begin, next((c for name, c in _CLASSES.items() if str(token).startswith(name)), "")


@cache
def _lexer() -> Any:
    from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped, unused-ignore]

    return PythonLexer()
