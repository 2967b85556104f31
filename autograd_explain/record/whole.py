"""Layers of torch.nn that are watched as one operation each.

`nn.LSTM` and its like read some twenty sizes, types and devices before their one operation, the
batch norms a few and a counter, and each reading would pass through the recorder.  Nothing of the
user's runs inside, and what is written there is known: the recorder steps aside for the call.
`__call__` is replaced and not `forward`, which torch.jit.script reads as source.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from torch import nn
from torch._C._autograd import _get_sequence_nr as sequence
from torch.nn.modules import module as modules

from .special import Noting
from .tensors import version

if TYPE_CHECKING:
    from .mode import Recorder
    from .presence import Presence

_RECURRENT: tuple[type[nn.Module], ...] = (nn.RNN, nn.LSTM, nn.GRU)
_NORMS: tuple[type[nn.Module], ...] = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_COUNTER = "num_batches_tracked"
_STATISTICS = ("running_mean", "running_var")


class WholeLayers:
    """In place while a cell is watched."""

    def __init__(self, recorder: Recorder, presence: Presence) -> None:
        self._recorder = recorder
        self._presence = presence

    def enter(self) -> None:
        for layer in (*_RECURRENT, *_NORMS):
            if "__call__" not in vars(layer):
                layer.__call__ = self._watched(layer)  # type: ignore[method-assign]

    def leave(self) -> None:
        for layer in (*_RECURRENT, *_NORMS):
            if getattr(vars(layer).get("__call__"), "__module__", "") == __name__:
                del layer.__call__

    def _watched(self, layer: type[nn.Module]) -> Callable[..., Any]:
        presence, passed, run = self._presence, self._recorder.passed, nn.Module.__call__
        norm = layer in _NORMS
        name = "batch_norm" if norm else layer.__name__.lower()
        operation = self._recorder.operations.number(name)

        def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if type(self) is not layer or _has_hooks(self) or not presence.step_aside():
                return run(self, *args, **kwargs)
            counted = _count(self) if norm else -1
            before = sequence()
            try:
                result = run(self, *args, **kwargs)
            finally:
                presence.step_back()
            frame = sys._getframe(1)
            given = (*args, *kwargs.values(), *self._parameters.values())
            passed(before, given, result, frame, operation)
            if norm and self.training:
                write_statistics(self, counted, frame, operation)
            return result

        write_statistics = self._wrote_statistics
        return __call__

    def _wrote_statistics(
        self, module: nn.Module, counted: int, frame: FrameType, operation: int
    ) -> None:
        """A batch norm in training writes its statistics, without a new version."""
        buffers = module._buffers
        recorder = self._recorder
        if recorder.broken is not None:
            return
        with Noting(recorder):
            site = recorder.sites.here(frame, operation)
            for name in _STATISTICS:
                buffer = buffers.get(name)
                if buffer is not None:
                    recorder.wrote_unversioned(buffer, site, own=True)
            counter = buffers.get(_COUNTER)
            if counter is not None and version(counter) != counted:
                recorder.wrote(counter, counted, frame, operation, site=site)


def _count(module: nn.Module) -> int:
    counter = module._buffers.get(_COUNTER)
    return -1 if counter is None else version(counter)


def _has_hooks(module: nn.Module) -> bool:
    """Whether code of somebody's runs around `forward`."""
    own = vars(module)
    if own["_forward_pre_hooks"] or own["_forward_hooks"] or "forward" in own:
        return True
    if own["_backward_pre_hooks"] or own["_backward_hooks"]:
        return True
    return bool(
        modules._global_forward_pre_hooks
        or modules._global_forward_hooks
        or modules._global_backward_pre_hooks
        or modules._global_backward_hooks
    )
