"""Warnings at the line where they belong.

A warning raised inside torch names a line so many calls up; under a function mode the mode's own
calls, and those of torch's override machinery, stand in between.  Here it is shown, and counted as
shown, at the line that it would have named without us.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ...isolation.own_frames import without_us

#: For mypy, which does not know `_showwarnmsg`: every warning that is to be shown passes it, also
#: where the program replaces `showwarning` or records what is shown.
_warnings: Any = warnings


def _warn_at(frame: FrameType, message: Warning | str, category: type[Warning]) -> None:
    """`warnings.warn` as if called from `frame`, its once-per-line registry included."""
    scope = frame.f_globals
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        scope.get("__name__", "<string>"),
        scope.setdefault("__warningregistry__", {}),
    )


@contextmanager
def warnings_at_home() -> Iterator[None]:
    """Warnings are shown at the line that they would have named without the mode.

    The filters are left alone: any change of them makes Python forget what it has shown.
    """
    previous = _warnings._showwarnmsg

    def show(message: warnings.WarningMessage) -> None:
        frames = _frames(sys._getframe(1))
        at = _named(frames, message.filename, message.lineno)
        home = None if at is None else _without_us(frames)[at : at + 1]
        if at is None or not home or home[0] is frames[at]:
            previous(message)
            return
        # Else the next line with the same text would count as shown.
        _uncounted(frames[at].f_globals, message.message, message.category)
        _warn_at(home[0], message.message, message.category)

    _warnings._showwarnmsg = show
    try:
        yield
    finally:
        if _warnings._showwarnmsg is show:
            _warnings._showwarnmsg = previous


def _frames(frame: FrameType | None) -> list[FrameType]:
    """The stack from `frame` outward."""
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def _named(frames: list[FrameType], filename: str, lineno: int) -> int | None:
    """Which frame a warning names; None where it is told by us already, or by `warn_explicit`."""
    if any(f.f_code is _warn_at.__code__ for f in frames[:4]):
        return None
    for at, frame in enumerate(frames):
        if frame.f_lineno == lineno and frame.f_code.co_filename == filename:
            return at
    return None


def _without_us(frames: list[FrameType]) -> list[FrameType]:
    """The same, outward, as it would be without us."""
    outermost_first = frames[::-1]
    return [outermost_first[at] for at in reversed(without_us(outermost_first))]


def _uncounted(scope: dict[str, Any], message: Warning | str, category: type[Warning]) -> None:
    """Forget that a warning was shown at a line of this module's, which it does not belong to."""
    told = str(message), category
    once: dict[Any, Any] = getattr(warnings, "onceregistry", {})
    once.pop(told, None)
    registry = scope.get("__warningregistry__", {})
    for key in [k for k in registry if isinstance(k, tuple) and k[:2] == told]:
        del registry[key]
