"""A fork of the session taken before a cell runs."""

from __future__ import annotations

import sys
import time
import weakref
from typing import TYPE_CHECKING, Any, ClassVar

from .messages import read_message, write_message
from .process import Child, can_fork, fork_child

if TYPE_CHECKING:
    from .plan import Plan

_READY_SECONDS = 5.0
_MAX_ALIVE = 2


class Checkpoint:
    """An idle copy of the process: every object as it was, graph tensors included.

    It costs a fork (some 10 ms) and then nothing but the memory that the session changes while
    it lives (pages are shared until written).  It ends with `discard`, with this object, or with
    the process, whichever comes first; older ones end when more than two are alive.
    """

    _alive: ClassVar[weakref.WeakSet[Checkpoint]] = weakref.WeakSet()

    def __init__(self, child: Child) -> None:
        self._child = child
        self._since = time.monotonic()
        self._end = weakref.finalize(self, _end, child)

    @classmethod
    def take(cls, namespace: dict[str, Any]) -> Checkpoint | None:
        """Copy the session with the user's `namespace`; None where it cannot be done.

        It cannot before torch is loaded (then there is nothing to copy that a replay of the
        cells would not make anew), with a device initialised, or off Linux.
        """
        if "torch" not in sys.modules or not can_fork():
            return None
        older = sorted((c for c in cls._alive if c.alive), key=lambda c: c._since)
        for checkpoint in older[: len(older) - _MAX_ALIVE + 1]:
            checkpoint.discard()
        try:
            child = fork_child(lambda reader, writer: _serve(namespace, reader, writer))
        except OSError:  # no process or no memory to be had
            return None
        if not _ready(child):
            child.end(group=True)
            return None
        checkpoint = cls(child)
        cls._alive.add(checkpoint)
        return checkpoint

    @property
    def alive(self) -> bool:
        return bool(self._end.alive)

    def discard(self) -> None:
        """End the copy.  May be called twice."""
        self._end()

    def owns(self, child: Child) -> bool:
        return child is self._child

    def converse(self, plan: Plan) -> Child | None:
        """Have the copy try a plan; the child to listen to, or None where it is gone."""
        return self._child if self.alive and self._child.send(plan) else None


def _end(child: Child) -> None:
    child.end(group=True)


def _ready(child: Child) -> bool:
    end = time.monotonic() + _READY_SECONDS
    while time.monotonic() < end and not child.closed:
        child.wait(end - time.monotonic())
        for message in child.messages():
            return bool(message == "ready")
    return False


def _serve(namespace: dict[str, Any], reader: int, writer: int) -> None:
    """The copy: wait for plans, try them, end with the session."""
    import gc

    from .isolate import isolate

    gc.disable()
    isolate((reader, writer))
    write_message(writer, "ready")
    session = None
    while (plan := read_message(reader)) is not None:
        from .coordinator import coordinate
        from .replay import ReplaySession
        from .sandbox import Sandbox

        if session is None:
            gc.enable()
            sandbox = Sandbox(plan.device)
            sandbox.enter()
            session = ReplaySession.copied(namespace, sandbox)
        for verdict in coordinate(plan, session):
            write_message(writer, verdict)
        write_message(writer, None)
