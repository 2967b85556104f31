"""A watched cell's traceback as it would be without the recorder.

Frames of the recorder are part of every error's traceback.  Its links are set right before IPython
shows it; `%tb`, `%debug` and `sys.last_traceback` see the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from ..incident import chain_of
from ..isolation.own_frames import without_us
from ..isolation.type_checks import set_traceback, traceback_of
from .guard import guarded


@contextmanager
def tidied(shell: Any) -> Iterator[None]:
    """While the body runs, tracebacks that the shell shows are tidy.

    `InteractiveShell._get_exc_info` is where every way of showing an error begins (IPython 7 to 9).
    """
    original = getattr(shell, "_get_exc_info", None)
    if original is None:
        yield
        return

    def get_exc_info(*args: Any, **options: Any) -> Any:
        found = original(*args, **options)
        with guarded("traceback"):
            tidy(found[1])
        return found

    shell._get_exc_info = get_exc_info
    try:
        yield
    finally:
        if vars(shell).get("_get_exc_info") is get_exc_info:
            del shell._get_exc_info


def tidy(error: BaseException) -> None:
    """Take our own frames, and the detour through them, out of an exception's traceback."""
    for each in chain_of(error):
        links = list(_links(traceback_of(each)))
        kept = [links[at] for at in without_us([link.tb_frame for link in links])]
        if kept and len(kept) < len(links):
            for here, following in zip(kept, [*kept[1:], None], strict=True):
                here.tb_next = following
            set_traceback(each, kept[0])


def _links(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
