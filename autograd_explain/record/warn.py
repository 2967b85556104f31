"""Warnings at the line where they belong.

A warning raised inside torch names the innermost Python line; under a function mode that is the
mode's own.  Here it is shown, and counted as shown, at the line it would have named without us.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_OWN = __file__.rsplit("warn.py", 1)[0]


def call_warning_at(frame: FrameType, func: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call `func`; what it warns of is reported at `frame`'s line, as without us."""
    __tracebackhide__ = True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = func(*args)
    for warning in caught:
        _warn_at(frame, warning.message, warning.category)
    return result


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
    """Warnings that name a line of the mode are shown at the line that would have been named."""
    previous = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: str | None = None,
    ) -> None:
        caller = _caller_of_mode(sys._getframe(1)) if filename.startswith(_OWN) else None
        if caller is None:
            previous(message, category, filename, lineno, file, line)
            return
        for name in ("mode", "special"):
            # Else the next line with the same text would count as shown.
            module = sys.modules.get(f"{__package__}.{name}")
            vars(module).pop("__warningregistry__", None)
        _warn_at(caller, message, category)

    warnings.showwarning = show
    try:
        yield
    finally:
        if warnings.showwarning is show:
            warnings.showwarning = previous


def _caller_of_mode(frame: FrameType | None) -> FrameType | None:
    """Who called torch: out of our frames, out of torch's override machinery."""
    while frame is not None and not frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_name == "handle_torch_function":
        # A Python function of torch that called itself again through the mode.
        frame = frame.f_back and frame.f_back.f_back
    return frame
