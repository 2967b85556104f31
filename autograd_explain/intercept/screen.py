"""Putting an explanation under the traceback: a display in kernels, coloured text in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from IPython.display import display

if TYPE_CHECKING:
    from ..render.shown import Shown


def show(shell: Any, shown: Shown) -> None:
    """A kernel's front end chooses HTML or text; a terminal gets text in colour."""
    if getattr(shell, "kernel", None) is not None:
        display(shown)  # type: ignore[no-untyped-call]
    else:
        shown.print(sys.stdout)


def show_finding(key: str, language: str, sentence: str) -> None:
    """A label and after it a sentence of a report, however long."""
    show_sentences((line(key, language), sentence), language)


def show_sentences(sentences: Iterable[str], language: str) -> None:
    """Sentences as one line."""
    say(("" if language in ("ja", "zh") else " ").join(sentences))


def show_line(key: str, language: str, **values: object) -> None:
    """One line of text from the labels."""
    say(line(key, language, **values))


def say(text: str) -> None:
    """Print what standard output can take of a text."""
    from ..render.text import encodable

    print(encodable(text, sys.stdout))


def line(key: str, language: str, **values: object) -> str:
    """A line of text from the labels."""
    from ..render.labels import word

    return word(key, language, **values)
