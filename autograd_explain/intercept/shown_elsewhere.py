"""Errors that are shown without being what a cell ended in: those of widgets' callbacks, and what
an Output widget has caught.

ipywidgets hands them to the shell's `showtraceback`.  A report that follows at once is where the
traceback is, in the Output widget too, which takes what is displayed while it is open.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType, MethodType
from typing import Any

from ..isolation.type_checks import is_a
from .guard import guarded

#: Names of the function that wraps a method and what it wraps.
AROUND = "autograd_explain_around"


class ShownElsewhere:
    """Wraps one shell's `showtraceback`; `told(error)` follows, unless IPython itself calls it."""

    def __init__(self, shell: Any, told: Callable[[Exception], None]) -> None:
        self._shell = shell
        self._told = told
        self._wrapped: Any = None

    def install(self) -> None:
        """Nothing is done where somebody else has replaced the method."""
        if "showtraceback" in vars(self._shell) or not hasattr(self._shell, "_get_exc_info"):
            return
        original = self._shell.showtraceback

        def showtraceback(_: Any, exc_tuple: Any = None, *more: Any, **options: Any) -> Any:
            result = original(exc_tuple, *more, **options)
            with guarded("callback"):
                error = (sys.exc_info() if exc_tuple is None else exc_tuple)[1]
                here = threading.current_thread() is threading.main_thread()
                names = self._shell.user_global_ns
                if here and is_a(error, Exception) and not _is_ipythons(sys._getframe(1), names):
                    self._told(error)
            return result

        setattr(showtraceback, AROUND, original)
        self._wrapped = self._shell.showtraceback = MethodType(showtraceback, self._shell)

    def remove(self) -> None:
        """Nothing is left, unless somebody has wrapped us: then we only pass through."""
        self._told = lambda error: None
        if self._wrapped is not None and vars(self._shell).get("showtraceback") is self._wrapped:
            del self._shell.showtraceback


def _is_ipythons(caller: FrameType | None, names: object) -> bool:
    """Whether IPython asks, itself or through what others have put around the method: then no
    cell's own code is on the way to it, for the cell has ended."""
    while caller is not None:
        if str(caller.f_globals.get("__name__", "")).startswith("IPython.core."):
            return True
        if caller.f_globals is names and caller.f_code.co_name.startswith(("<module>", "<cell ")):
            return False
        caller = caller.f_back
    return False
