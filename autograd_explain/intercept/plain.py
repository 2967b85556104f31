"""Explaining an exception that the caller hands over, in a notebook or without one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..incident import Incident, frames_of
from ..model import Kind
from ..program import Program
from ..settings import AutogradExplain

if TYPE_CHECKING:
    from ..render.explanation import Explanation
    from .hooks import Session


def explain_exception(
    error: BaseException | None, session: Session | None, explain: Callable[..., Explanation | None]
) -> Explanation | None:
    """The explanation of `error`, else of the exception being handled, else of the last shown."""
    error = error or sys.exc_info()[1] or getattr(sys, "last_value", None)
    if error is None:
        return None
    if session is not None:
        return session.explain(error)
    for cause in chain_of(error):
        frames = frames_of(cause.__traceback__)
        program = Program()
        incident = Incident(
            Kind.ERROR, str(cause), program, _namespace(cause), frames, exception=cause
        )
        found = explain(incident, AutogradExplain().options())
        if found is not None:
            return found
    return None


def _namespace(error: BaseException) -> Mapping[str, Any]:
    """The module in which the exception was caught: where a script's names are."""
    traceback = error.__traceback__
    return {} if traceback is None else traceback.tb_frame.f_globals


_MAX_CHAIN = 10  #: exceptions looked at behind the one that was shown


def chain_of(error: BaseException) -> list[BaseException]:
    """The exception and those it was raised from, the shown one first."""
    found: list[BaseException] = []
    here: BaseException | None = error
    while here is not None and here not in found and len(found) < _MAX_CHAIN:
        found.append(here)
        here = here.__cause__ or (None if here.__suppress_context__ else here.__context__)
    return found
