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
    if in_kernel(shell):
        display(shown)  # type: ignore[no-untyped-call]
    else:
        shown.print(sys.stdout)


def show_for_now(shell: Any, shown: Shown) -> Any:
    """The same, with what `show_instead` wants; None in a terminal."""
    if in_kernel(shell):
        return display(shown, display_id=True)  # type: ignore[no-untyped-call]
    shown.print(sys.stdout)
    return None


def show_instead(shell: Any, shown: Shown, before: Any) -> None:
    """In the place of what was shown before; a terminal has both."""
    if before is None:
        show(shell, shown)
    else:
        before.update(shown)


def in_kernel(shell: Any) -> bool:
    """Whether a front end shows what it gets, not a terminal."""
    return getattr(shell, "kernel", None) is not None


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
