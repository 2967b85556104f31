"""A watched cell's traceback as it would be without the recorder.

The recorder's function mode stands between the user's line and torch, so its frame is part of
every error's traceback, and a method such as `Tensor.backward` appears twice: once asking whether
a mode wants the call, once doing the work.  The links of the traceback are set right before
IPython shows it; `%tb`, `%debug` and `sys.last_traceback` see the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from ..incident import chain_of
from ..isolation.type_checks import set_traceback, traceback_of
from .guard import guarded

_PACKAGE = __name__.split(".")[0] + "."
_DETOUR = "torch.overrides"


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
        kept = _kept(links)
        if kept and len(kept) < len(links):
            for here, following in zip(kept, [*kept[1:], None], strict=True):
                here.tb_next = following
            set_traceback(each, kept[0])


def _links(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _kept(links: list[TracebackType]) -> list[TracebackType]:
    kept: list[TracebackType] = []
    detour = False
    for link in links:
        module = str(link.tb_frame.f_globals.get("__name__", ""))
        if module.startswith(_PACKAGE):
            detour = True
            while kept and kept[-1].tb_frame.f_globals.get("__name__") == _DETOUR:
                kept.pop()
            continue
        if detour and kept and kept[-1].tb_frame.f_code is link.tb_frame.f_code:
            kept.pop()
        detour = False
        kept.append(link)
    return kept
