"""The function mode that watches.

A `TorchFunctionMode` and nothing else: a dispatch mode stops foreach optimizers from bumping
versions, and saved-tensor hooks switch torch's own version check off, so either would make the
error go away that is to be explained.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch._C._autograd import _get_sequence_nr as sequence
from torch.overrides import TorchFunctionMode

from ..detect.detectors import Detectors
from .call_sites import CallSites
from .event_log import EventLog
from .event_notes import NO_KEYWORDS, EventNotes
from .special_calls import Special
from .torch_functions import CallKind, FunctionTable

# Plain integers: comparing members of an enum costs twice as much.
_PASS, _CALL, _VIEW = int(CallKind.PASS), int(CallKind.CALL), int(CallKind.VIEW)
_WRITE, _COMPOSITE, _INPLACE = int(CallKind.WRITE), int(CallKind.COMPOSITE), int(CallKind.INPLACE)
_NUMBER = int(CallKind.NUMBER)


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
        self._special = Special(self).handlers

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
            self.noted(before, after, args, result, sys._getframe(1), operation)
            if self._traces:
                self.suspicion.spread(args, kwargs or NO_KEYWORDS, result)
            return result
        if kwargs is None:
            kwargs = NO_KEYWORDS
        elif "out" in kwargs:
            kind = _COMPOSITE
        return self._less_frequent(kind, func, types, args, kwargs, operation)

    def _less_frequent(
        self,
        kind: int,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        operation: int,
    ) -> Any:
        __tracebackhide__ = True
        frame = sys._getframe(2)
        if kind == _INPLACE:
            kind = _COMPOSITE if kwargs.get("inplace") else _VIEW
        if kind == _VIEW:
            return self._view(func, args, kwargs, frame, operation)
        if kind == _WRITE:
            return self._write(func, args, kwargs, frame, operation)
        if kind == _NUMBER:
            return self._number(func, args, kwargs, frame, operation)
        if kind == _COMPOSITE:
            return self.composite(func, args, kwargs, frame, operation)
        return self._special[kind](func, types, args, kwargs, frame, operation)
