"""Explaining what nobody caught, in the main thread and in others."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from ..intercept import guard

Tell = Callable[[BaseException], None]


class Hooks:
    """In the place of `sys.excepthook` and `threading.excepthook`: those before it go first."""

    def __init__(self, tell: Tell) -> None:
        self._tell_of = tell
        self._active = False
        self._main: Callable[..., Any] = sys.excepthook
        self._thread: Callable[..., Any] = threading.excepthook

    def install(self, *, main: bool = True) -> None:
        """Take both places; only that for threads without `main`."""
        self._active = True
        self._thread, threading.excepthook = threading.excepthook, self._of_thread
        if main:
            self._main, sys.excepthook = sys.excepthook, self._of_main

    def remove(self) -> None:
        """Put back what was there; where another stands in front, only pass through."""
        self._active = False
        if threading.excepthook == self._of_thread:
            threading.excepthook = self._thread
        if sys.excepthook == self._of_main:
            sys.excepthook = self._main

    def _of_main(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        self._main(kind, error, traceback)
        self._tell(error)

    def _of_thread(self, given: threading.ExceptHookArgs) -> None:
        self._thread(given)
        if given.exc_value is not None:
            self._tell(given.exc_value)

    def _tell(self, error: BaseException) -> None:
        if not self._active or not isinstance(error, Exception):
            return
        with guard.guarded("explain"):
            self._tell_of(error)
        guard.tell(outside=True)


@contextmanager
def explaining_threads(tell: Tell) -> Iterator[None]:
    """What a thread of the program raises is explained while the body runs."""
    hooks = Hooks(tell)
    hooks.install(main=False)
    try:
        yield
    finally:
        hooks.remove()
