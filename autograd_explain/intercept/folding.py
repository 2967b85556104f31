"""Library frames of a traceback on a line each, so that the report under it is seen at once.

IPython hides a frame by a name in its locals (`__tracebackhide__`), which is not ours to put into
torch's frames.  So the formatter of a single frame, `VerboseTB.format_record` (IPython 7 to 9),
is wrapped while such a traceback is formatted.  What else shows the same error is as ever: `%tb`,
`%debug`, `traceback.print_exc()`, `sys.last_traceback`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..isolation.type_checks import is_a
from ..program import is_library
from .guard import guarded
from .shown_elsewhere import AROUND

#: The names of a frame's arguments, at the end of its first line; they fill a line of their own.
_ARGUMENTS = re.compile(r"\([^()\n]*\)(?=[^()\n]*\Z)")


class Folding:
    """Wraps how one shell formats a traceback; `wanted(error)` says whether to fold it."""

    def __init__(self, shell: Any, wanted: Callable[[BaseException], bool]) -> None:
        self._shell = shell
        self._wanted = wanted
        self._formatter: Any = getattr(shell, "InteractiveTB", None)
        self._original: Any = getattr(self._formatter, "structured_traceback", None)

    def install(self) -> None:
        if self._original is not None and hasattr(self._formatter, "format_record"):
            self._formatter.structured_traceback = self._structured_traceback

    def remove(self) -> None:
        """Nothing is left, unless somebody has wrapped us: then we only pass through."""
        self._wanted = lambda error: False
        if vars(self._formatter or self).get("structured_traceback") == self._structured_traceback:
            del self._formatter.structured_traceback

    def _structured_traceback(self, etype: Any, value: Any, *more: Any, **options: Any) -> Any:
        if not self._folds(value):
            return self._original(etype, value, *more, **options)
        with _one_line_each(self._formatter):
            return self._original(etype, value, *more, **options)

    def _folds(self, error: Any) -> bool:
        with guarded("traceback"):
            return is_a(error, Exception) and self._is_ipythons(error) and self._wanted(error)
        return False

    def _is_ipythons(self, error: Exception) -> bool:
        """Whether IPython itself shows this error, in its usual form: no handler of the user's or
        of another extension's, no wish for all or for nothing of a frame."""
        formatter = self._formatter
        return (
            self._shell.InteractiveTB is formatter
            and getattr(formatter, "mode", None) == "Context"
            and not is_a(error, tuple(self._shell.custom_exceptions))
            and _is_own(self._shell, "showtraceback")
            and _is_own(self._shell, "_showtraceback")
            and _is_own(formatter, "format_record")
        )


def _is_own(owner: Any, name: str) -> bool:
    """Whether a method is the one that the owner's class was written with, or ours around it.

    (ipykernel binds `shell._showtraceback` to itself.)
    """
    home = next(kind for kind in type(owner).__mro__ if name in vars(kind))
    written = vars(home)[name]
    as_written = getattr(written, "__module__", None) == home.__module__
    called = getattr(owner, name)
    called = getattr(called, AROUND, called)
    return as_written and getattr(called, "__func__", None) is written


@contextmanager
def _one_line_each(formatter: Any) -> Iterator[None]:
    original = formatter.format_record

    def format_record(*record: Any) -> Any:
        text = original(*record)
        with guarded("traceback"):
            return _first_line(text) if _is_of_library(record[0]) else text
        return text

    formatter.format_record = format_record
    try:
        yield
    finally:
        del formatter.format_record


def _is_of_library(record: Any) -> bool:
    """`record` is a frame (IPython 7) or has one, unless it stands for several that are alike."""
    frame = record if isinstance(record, FrameType) else getattr(record, "frame", None)
    return isinstance(frame, FrameType) and is_library(frame.f_code.co_filename)


def _first_line(text: str) -> str:
    line = text.partition("\n")[0]
    return _ARGUMENTS.sub("(…)", line)
