"""Calls of torch.fx's graph modules: what they hand out is seen before the program goes on."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from torch._C._autograd import _get_sequence_nr as sequence
from torch.fx import graph_module

from .special_calls import Noting
from .watching import Watching

if TYPE_CHECKING:
    from .event_notes import EventNotes
    from .mode_stack import ModeStack

#: Private: what every class of such a module calls.
_CALL = getattr(graph_module, "_WrappedCall", None)


class GraphModules(Watching):
    """Notes such calls."""

    def __init__(self, recorder: EventNotes, presence: ModeStack) -> None:
        super().__init__(recorder, presence)
        self._operation = recorder.operations.number("call")

    def enter(self) -> None:
        if _CALL is not None:
            self._presence.replace(_CALL, "__call__", self._watched(_CALL.__call__))

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def __call__(own: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            since = self._recorder.log.clock
            result = call(own, module, *args, **kwargs)
            if self._is_watching():
                with Noting(self._recorder):
                    self._called(module, result, since, sys._getframe(1))
            return result

        return __call__

    def _called(self, module: Any, result: Any, since: int, frame: FrameType) -> None:
        recorder, outputs = self._recorder, self._recorder.suspicion.outputs
        if recorder.log.clock > since and (written := outputs.written(module)):
            site = recorder.sites.here(frame, self._operation)
            outputs.handed_out(module, written, result, since, site, sequence())
