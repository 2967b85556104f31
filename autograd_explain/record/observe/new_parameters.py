"""Where parameters are made: no function mode sees `nn.Parameter(x)`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from .special_calls import Noting
from .tensor_facts import address
from .watching import Watching

if TYPE_CHECKING:
    from .event_notes import EventNotes
    from .mode_stack import ModeStack


class NewParameters(Watching):
    """Notes where such a leaf is made."""

    def __init__(self, recorder: EventNotes, presence: ModeStack) -> None:
        super().__init__(recorder, presence)
        self._operation = recorder.operations.number("Parameter")

    def enter(self) -> None:
        made = staticmethod(self._watched(nn.Parameter.__new__))
        self._presence.replace(nn.Parameter, "__new__", made)

    def _watched(self, make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            result = make(cls, *args, **kwargs)
            source = args[0] if args else kwargs.get("data")
            if isinstance(source, Tensor) and self._is_watching():
                with Noting(self._recorder):
                    self._made(source, result, sys._getframe(1))
            return result

        return __new__

    def _made(self, source: Tensor, result: Any, frame: Any) -> None:
        if not isinstance(result, Tensor):
            return
        site = self._recorder.sites.here(frame, self._operation)
        if source.requires_grad:
            self._recorder.log.tick()
            self._recorder.suspicion.parameter(source, result, site)
        elif result.requires_grad:  # a copy's, perhaps
            self._recorder.suspicion.parameter_of_values(source, result)
        if result.requires_grad and result.is_leaf:
            self._recorder.log.leaf(address(result), result, site)
