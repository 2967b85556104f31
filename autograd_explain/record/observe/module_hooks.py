"""Where modules get hooks: no function mode sees that."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import nn

from ...hooks import OF_MODULE
from .special_calls import Noting
from .watching import Watching


class ModuleHooks(Watching):
    """Notes which modules get some."""

    def enter(self) -> None:
        for name in OF_MODULE:
            self._presence.replace(nn.Module, name, self._watched(name))

    def _watched(self, name: str) -> Callable[..., Any]:
        register = getattr(nn.Module, name)

        @functools.wraps(register)
        def registering(self_: nn.Module, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            handle = register(self_, *args, **kwargs)
            if self._is_watching():
                with Noting(self._recorder):
                    self._recorder.suspicion.hooks.registered(self_, OF_MODULE[name])
            return handle

        return registering
