"""Where modules get hooks: no function mode sees that."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import nn

from ...hooks import OF_MODULE
from .special_calls import Noting

if TYPE_CHECKING:
    from .event_notes import EventNotes
    from .mode_stack import ModeStack


class ModuleHooks:
    """Notes which modules get some, for as long as `presence` lasts."""

    def __init__(self, recorder: EventNotes, presence: ModeStack) -> None:
        self._recorder = recorder
        self._presence = presence
        self._thread = threading.get_ident()

    def enter(self) -> None:
        for name in OF_MODULE:
            self._presence.replace(nn.Module, name, self._watched(name))

    def _watched(self, name: str) -> Callable[..., Any]:
        register = getattr(nn.Module, name)

        @functools.wraps(register)
        def registering(self_: nn.Module, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            handle = register(self_, *args, **kwargs)
            recorder = self._recorder
            if recorder.broken is None and threading.get_ident() == self._thread:
                with Noting(recorder):
                    recorder.suspicion.hooks.registered(self_, OF_MODULE[name])
            return handle

        return registering
