"""A fork of the session taken before a cell runs."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from .messages import read_message, write_message
from .process import Child, can_fork, fork_child

if TYPE_CHECKING:
    from ..model import Reason
    from .plan import Loaded, Plan
    from .replay import RunAgain

_READY_SECONDS = 5.0
READY, LOADED = "ready", "loaded"  #: what the copy says of itself
_MAX_ALIVE = 2


class Checkpoint:
    """An idle copy of the process: every object as it was, graph tensors included.

    It costs a fork (some 10 ms) and then nothing but the memory that the session changes while
    it lives (pages are shared until written).  It ends with `discard`, with this object, or with
    the process, whichever comes first; older ones end when more than two are alive.
    """

    _alive: ClassVar[weakref.WeakSet[Checkpoint]] = weakref.WeakSet()

    def __init__(self, child: Child, alone: bool = False) -> None:
        #: Whether no other state than this can be replayed from.
        self.alone = alone
        self._child = child
        self._since = time.monotonic()
        #: Why the cells before it do not run again, where that was seen.
        self.stranded: Reason | None = None
        self._loads = self._has_loaded = False
        self._end = weakref.finalize(self, _end, child)

    @classmethod
    def take(
        cls,
        namespace: dict[str, Any],
        again: RunAgain | None = None,
        begin: Callable[[], None] | None = None,
    ) -> Checkpoint | None:
        """Copy the session with the user's `namespace`; None where it cannot be done.

        `again` is what runs in the place of cells; `begin` is called in the copy, once.

        It cannot before torch is loaded (then there is nothing to copy that a replay of the
        cells would not make anew), with a device initialised, or off Linux.
        """
        if "torch" not in sys.modules or not can_fork():
            return None
        older = sorted((c for c in cls._alive if c.alive), key=lambda c: c._since)
        for checkpoint in older[: len(older) - _MAX_ALIVE + 1]:
            checkpoint.discard()
        try:
            child = fork_child(
                lambda reader, writer: _serve(namespace, again, begin, reader, writer)
            )
        except OSError:  # no process or no memory to be had
            return None
        if not _heard(child, READY, _READY_SECONDS):
            child.end(group=True)
            return None
        checkpoint = cls(child, again is not None)
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

    def begin_to_load(self, loaded: Loaded) -> None:
        """Have the copy load libraries, once for all that it tries, while this process goes on."""
        if not self._loads and loaded.modules and self.alive:
            self._loads = self._child.send(loaded)

    def load(self, loaded: Loaded, seconds: float) -> None:
        """Have the copy load libraries; waits so long at most."""
        self.begin_to_load(loaded)
        if self._loads and not self._has_loaded and self.alive:
            self._has_loaded = _heard(self._child, LOADED, seconds)

    def converse(self, plan: Plan) -> Child | None:
        """Have the copy try a plan; the child to listen to, or None where it is gone."""
        self._has_loaded = self._loads  # it answers in order: nobody is to wait for that any more
        return self._child if self.alive and self._child.send(plan) else None


def _end(child: Child) -> None:
    child.end(group=True)


def _heard(child: Child, word: str, seconds: float) -> bool:
    """Whether this is what it says next."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not child.closed:
        child.wait(end - time.monotonic())
        for message in child.messages():
            return bool(message == word)
    return False


def _serve(
    namespace: dict[str, Any],
    again: RunAgain | None,
    begin: Callable[[], None] | None,
    reader: int,
    writer: int,
) -> None:
    """The copy: wait for plans, try them, end with the session."""
    import gc

    from .isolate import isolate
    from .overlay import now

    gc.disable()
    since = now()
    isolate((reader, writer))
    while now() == since:  # what the session writes from here on bears a later time
        time.sleep(0.001)
    write_message(writer, READY)
    session = None
    while (asked := read_message(reader)) is not None:
        from .coordinator import coordinate
        from .libraries import load
        from .plan import Loaded
        from .replay import ReplaySession
        from .sandbox import Sandbox

        if session is None:
            if begin is not None:
                begin()
            gc.enable()
            sandbox = Sandbox(asked.device, since)
            sandbox.enter()
            if isinstance(asked, Loaded):
                load(asked)
                sandbox.reason = None
            session = ReplaySession.copied(namespace, sandbox, again)
        if isinstance(asked, Loaded):
            write_message(writer, LOADED)
            continue
        for verdict in coordinate(asked, session):
            write_message(writer, verdict)
        write_message(writer, None)
