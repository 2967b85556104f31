"""The function mode that watches.

A `TorchFunctionMode` and nothing else: a dispatch mode stops foreach optimizers from bumping
versions, and saved-tensor hooks switch torch's own version check off, so either would make the
error go away that is to be explained.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from torch._C._autograd import _get_sequence_nr as sequence
from torch.overrides import TorchFunctionMode

from ..detect.detectors import Detectors
from .call_sites import CallSites
from .event_log import EventLog
from .event_notes import NO_KEYWORDS, EventNotes
from .special_calls import Special
from .tensor_facts import requires_grad_at_sight
from .torch_functions import CallKind, FunctionTable

# Plain integers: comparing members of an enum costs twice as much.
_PASS, _CALL, _VIEW = int(CallKind.PASS), int(CallKind.CALL), int(CallKind.VIEW)


class Recorder(EventNotes, TorchFunctionMode):
    """Notes what passes; never changes what a call gets or gives.

    An error of its own switches it off (`broken`) and reaches nobody.
    """

    def __init__(
        self, log: EventLog, sites: CallSites, operations: FunctionTable, suspicion: Detectors
    ) -> None:
        TorchFunctionMode.__init__(self)
        EventNotes.__init__(self, log, sites, operations, suspicion)
        self._known = operations.known
        self._handlers: dict[int, Callable[..., Any]] = {
            _CALL: self.composite,  # with `out=`
            _VIEW: self._view,
            int(CallKind.WRITE): self._write,
            int(CallKind.COMPOSITE): self.composite,
            int(CallKind.INPLACE): self._inplace,
            int(CallKind.NUMBER): self._number,
            **Special(self).handlers,
        }

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        # Most calls of a training step end in the first two branches: they are kept short.
        __tracebackhide__ = True
        try:
            kind, operation = self._known[func]
        except (KeyError, TypeError):
            kind, operation = self.operations.learn(func)
        if kind == _PASS or self.broken is not None:
            return func(*args) if kwargs is None else func(*args, **kwargs)
        if kind == _CALL and (kwargs is None or "out" not in kwargs):
            before = sequence()
            result = func(*args) if kwargs is None else func(*args, **kwargs)
            after = sequence()
            if after != self.seen or requires_grad_at_sight(args) is not False:
                self.noted(before, after, args, result, sys._getframe(1), operation)
            if self._traces:
                self._spread(args, kwargs or NO_KEYWORDS, result)
            return result
        if kwargs is None:
            kwargs = NO_KEYWORDS
        elif "out" in kwargs:
            kind = _CALL
        return self._handlers[kind](func, args, kwargs, sys._getframe(1), operation)

    def _inplace(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
        operation: int,
    ) -> Any:
        __tracebackhide__ = True
        run = self.composite if kwargs.get("inplace") else self._view
        return run(func, args, kwargs, frame, operation)
