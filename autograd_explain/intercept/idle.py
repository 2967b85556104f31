"""What the first report needs is loaded while no cell runs, so that it does not wait for it.

In the event loop and the thread of the kernel, or of a terminal's prompt, a step at a time: a
thread of ours would load during a cell, and would be there when a process is forked.  Elsewhere
it is loaded when it is needed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..isolation.generators import kept
from ..isolation.silence import silenced
from .guard import guarded

_FIRST = 0.2  #: seconds after a cell, in which the next one may come
_NEXT = 0.01  #: between two steps, in which a message is taken


class Idle:
    """Goes through the steps of one session, once, after torch is there."""

    def __init__(
        self,
        shell: Any,
        steps: Callable[[], Iterator[None]] | None,
        is_busy: Callable[[], bool],
    ) -> None:
        self._loop = getattr(getattr(shell, "kernel", None), "io_loop", None)
        #: prompt_toolkit's application; its loop runs while the user is asked, and may be another
        #: one each time.
        self._prompt = getattr(getattr(shell, "pt_app", None), "app", None)
        self._at_prompt: asyncio.TimerHandle | None = None
        self._make = steps
        self._is_busy = is_busy
        self._steps: Iterator[None] | None = None
        self._waits = False

    def begin(self) -> None:
        """A cell has ended: go on where the steps were left."""
        # A torch that is still being imported has no Tensor.
        if self._waits or self._make is None or not hasattr(sys.modules.get("torch"), "Tensor"):
            return
        if self._loop is not None:
            self._later(_FIRST)
        elif self._prompt is not None:
            with guarded("idle"):
                self._prompt.pre_run_callables.append(self._asked)

    def end(self) -> None:
        """Nothing more is loaded."""
        self._make = None

    def _asked(self) -> None:
        """The prompt stands: prompt_toolkit calls this once, in its loop."""
        if self._at_prompt is not None:
            self._at_prompt.cancel()
        self._later(_FIRST)

    def _later(self, seconds: float) -> None:
        with guarded("idle"):
            if self._loop is not None:
                self._loop.call_later(seconds, self._go_on)
                self._waits = True
            else:
                loop = asyncio.get_running_loop()
                self._at_prompt = loop.call_later(seconds, self._go_on)

    @kept()
    def _go_on(self) -> None:
        self._waits = False
        if self._make is None or self._is_busy():
            return  # the end of that cell begins again
        done = True
        with guarded("idle"), silenced():
            self._steps = self._make() if self._steps is None else self._steps
            done = next(self._steps, self) is self
        if done:
            self.end()
        else:
            self._later(_NEXT)
