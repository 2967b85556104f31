"""Explaining an exception that the caller hands over, in a notebook or without one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..incident import Incident, LiveFrame, chain_of, frames_of, running
from ..isolation.generators import kept
from ..isolation.type_checks import message_of, traceback_of
from ..model import Kind
from ..program import Program
from ..settings import AutogradExplain, Options
from .crossed import Crossed, asking, crossed, incident_of

if TYPE_CHECKING:
    from ..render.explanation import Explanation


def explain_exception(
    error: BaseException | None,
    explain: Callable[..., Explanation | None],
    in_session: Callable[[BaseException], Explanation | None] | None = None,
) -> Explanation | None:
    """The explanation of `error`, else of the exception being handled, else of the last shown.

    `in_session` explains it with what a notebook's session knows.
    """
    error = error or sys.exc_info()[1] or getattr(sys, "last_value", None)
    if error is None:
        return None
    if in_session is not None:
        return in_session(error)
    with kept():
        return _explain(error, explain)


def _explain(
    error: BaseException, explain: Callable[..., Explanation | None]
) -> Explanation | None:
    options = AutogradExplain().options()
    for cause in chain_of(error):
        apart = crossed(cause)
        if apart is not None:
            return _of_another_process(apart, options, explain)
        frames = frames_of(traceback_of(cause))
        program = program_of(frames)
        incident = Incident(
            Kind.ERROR, message_of(cause), program, program.names, frames, exception=cause
        )
        found = explain(incident, options)
        if found is not None:
            return found
    return None


def _of_another_process(
    apart: Crossed, options: Options, explain: Callable[..., Explanation | None]
) -> Explanation | None:
    program = program_of(apart.frames(Program()))
    frames = apart.frames(program)
    asked = incident_of(apart, program, program.names, frames, options)
    return explain(asked, options, **asking(apart, asked))


def program_of(frames: tuple[LiveFrame, ...]) -> Program:
    """What ran, outside a notebook: the file of the user's outermost frame, and its names."""
    for live in frames:
        source = Program().source_of(live.code)
        if source is not None:
            sources = () if source.changed else (source,)
            return Program(sources, live.frame.f_globals, *running(frames))
    return Program((), frames[0].frame.f_globals if frames else {}, *running(frames))
