"""Layers of torch.nn that are watched as one operation each.

`nn.LSTM` and its like read some twenty sizes, types and devices before their one operation, the
batch norms a few and a counter, and each reading would pass through the recorder.  Nothing of the
user's runs inside, and what is written there is known: the recorder steps aside for the call.  So
it does for an `nn.Sequential` of layers that write nothing.  `__call__` is replaced and not
`forward`, which torch.jit.script reads as source.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from torch import Tensor, nn
from torch._C._autograd import _get_sequence_nr as sequence
from torch.nn.modules import module as modules

from .special_calls import Noting
from .tensor_facts import version

if TYPE_CHECKING:
    from .event_notes import EventNotes
    from .mode_stack import ModeStack

#: The operation of a whole nn.Sequential; its nodes tell what was done.
SEQUENTIAL = "sequential"
_RECURRENT: tuple[type[nn.Module], ...] = (nn.RNN, nn.LSTM, nn.GRU)
_NORMS: tuple[type[nn.Module], ...] = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
#: These do not save their result for backward: what follows may write it.
_RESULT_NOT_SAVED: frozenset[type[nn.Module]] = frozenset(
    {
        *(nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d),
        *(*_NORMS, nn.LayerNorm, nn.GroupNorm, nn.AvgPool1d, nn.AvgPool2d),
    }
)
#: Layers that may be in an nn.Sequential watched as one.
_LAYERS = _RESULT_NOT_SAVED | {
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish),
    *(nn.Sigmoid, nn.Tanh, nn.Softplus, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid),
    *(nn.Softmax, nn.LogSoftmax, nn.LogSigmoid, nn.Dropout, nn.Dropout1d, nn.Dropout2d),
    *(nn.MaxPool1d, nn.MaxPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d),
    *(nn.Identity, nn.Flatten, nn.Unflatten, nn.Upsample),
}
#: What a subclass does with the functions that get it is its own.
_PLAIN = frozenset({Tensor, nn.Parameter})
#: For mypy, which knows no `super` outside of methods.
_next: Any = super
_COUNTER = "num_batches_tracked"
_STATISTICS = ("running_mean", "running_var")


class OpaqueLayers:
    """Puts the watched `__call__`s in place for as long as `presence` lasts."""

    def __init__(self, recorder: EventNotes, presence: ModeStack) -> None:
        self._recorder = recorder
        self._presence = presence
        self._seen: WeakSet[nn.Module] = WeakSet()
        self._norm = recorder.operations.number("batch_norm")
        self._sequential = recorder.operations.number(SEQUENTIAL)

    def enter(self) -> None:
        for layer in (*_RECURRENT, *_NORMS):
            self._presence.replace(layer, "__call__", self._watched(layer))
        self._presence.replace(nn.Sequential, "__call__", self._watched_sequential())

    def _watched(self, layer: type[nn.Module]) -> Callable[..., Any]:
        presence, passed = self._presence, self._recorder.passed
        norm = layer in _NORMS
        number = self._recorder.operations.number
        operation = self._norm if norm else number(layer.__name__.lower())

        # What comes next in line is asked for anew: a subclass may have put a base of its own
        # there, and torch.fx puts its own into nn.Module while it traces.
        @functools.wraps(nn.Module.__call__)
        def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            known = presence.is_on_top() and _is_known(self, layer) and not _has_hooks(self)
            if not known:
                return _next(layer, self).__call__(*args, **kwargs)
            presence.step_aside()
            counted = _count(self) if norm else -1
            before = sequence()
            try:
                result = _next(layer, self).__call__(*args, **kwargs)
            finally:
                presence.step_back()
            frame = sys._getframe(1)
            given = (*args, *kwargs.values(), *self._parameters.values())
            passed(before, given, result, frame, operation)
            if norm:
                wrote_statistics([(self, counted)], frame)
            return result

        wrote_statistics = self._wrote_statistics
        return __call__

    def _watched_sequential(self) -> Callable[..., Any]:
        presence, passed = self._presence, self._passed_sequential

        @functools.wraps(nn.Module.__call__)
        def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            # Inside another one that is watched as a whole there is nothing to ask.
            plain = presence.is_on_top() and not kwargs and _PLAIN.issuperset(map(type, args))
            norms = _norms_of_sequential(self) if plain else None
            if norms is None:
                return _next(nn.Sequential, self).__call__(*args, **kwargs)
            presence.step_aside()
            before = sequence()
            counted = [(norm, _count(norm)) for norm in norms]
            try:
                result = _next(nn.Sequential, self).__call__(*args)
            finally:
                presence.step_back()
            # The site begins in this frame: torch's code called torch, not the user's.
            passed(self, before, args, result, counted, sys._getframe())
            return result

        return __call__

    def _passed_sequential(
        self,
        module: nn.Module,
        before: int,
        args: tuple[Any, ...],
        result: Any,
        counted: list[tuple[nn.Module, int]],
        frame: FrameType,
    ) -> None:
        recorder = self._recorder
        given = args
        if module not in self._seen or sequence() == before or recorder.suspicion.traces:
            # Else the parameters have nothing new to tell.
            self._seen.add(module)
            given = (*args, *(p for layer in _flat(module) for p in layer._parameters.values()))
        site = recorder.passed(before, given, result, frame, self._sequential)
        recorder.viewed(args, result, frame, self._sequential, site)
        self._wrote_statistics(counted, frame)

    def _wrote_statistics(self, counted: list[tuple[nn.Module, int]], frame: FrameType) -> None:
        """Batch norms in training write their statistics, without a new version, and count."""
        recorder, operation = self._recorder, self._norm
        training = [(norm._buffers, count) for norm, count in counted if norm.training]
        if recorder.is_over or not training:
            return
        with Noting(recorder):
            site = recorder.sites.here(frame, operation)
            for buffers, count in training:
                for name in _STATISTICS:
                    buffer = buffers.get(name)
                    if buffer is not None:
                        recorder.wrote_unversioned(buffer, site, own=True)
                counter = buffers.get(_COUNTER)
                if counter is not None and version(counter) != count:
                    recorder.wrote(counter, count, frame, operation, site=site)


def _count(module: nn.Module) -> int:
    counter = module._buffers.get(_COUNTER)
    return -1 if counter is None else version(counter)


def _home(function: Any) -> str:
    """The module that a function was written in, whatever functools.wraps made it say."""
    return str(getattr(function, "__globals__", {}).get("__name__"))


_CLASSES: tuple[type[nn.Module], ...] = (*_LAYERS, *_RECURRENT, nn.Sequential)
#: torch's own `forward` of each class; a program may have put another one there.
_FORWARD: dict[type[nn.Module], Any] = {
    layer: layer.forward for layer in _CLASSES if _home(layer.forward) == layer.__module__
}


def _is_known(module: nn.Module, layer: type[nn.Module]) -> bool:
    """Whether it is one of torch's own, with torch's own `forward`."""
    return type(module) is layer and layer.forward is _FORWARD.get(layer)


def _has_hooks(module: nn.Module) -> bool:
    """Whether code of somebody's runs around `forward`."""
    if _has_own_hooks(vars(module)) or _home(nn.Module.__call__) != modules.__name__:
        return True
    return bool(
        modules._global_forward_pre_hooks
        or modules._global_forward_hooks
        or modules._global_backward_pre_hooks
        or modules._global_backward_hooks
    )


def _has_own_hooks(own: dict[str, Any]) -> bool:
    try:
        hooks = own["_forward_pre_hooks"] or own["_forward_hooks"]
        hooks = hooks or own["_backward_pre_hooks"] or own["_backward_hooks"]
    except KeyError:  # it was never initialized
        return True
    # `_compiled_call_impl` is what `module.compile()` leaves.
    return bool(hooks) or "forward" in own or own.get("_compiled_call_impl") is not None


def _norms_of_sequential(module: nn.Module) -> list[nn.Module] | None:
    """The batch norms of an nn.Sequential; None where it is not to be watched as one.

    As one: every layer is known, code of nobody's runs, and in-place layers write only what the
    layer before has made and not saved, so that no write in there can be felt outside.
    """
    if not _is_known(module, nn.Sequential) or _has_hooks(module):
        return None
    norms = []
    before: type[nn.Module] = nn.Module
    for layer in _flat(module):
        kind, own = type(layer), layer.__dict__
        if kind not in _LAYERS or kind.forward is not _FORWARD.get(kind) or _has_own_hooks(own):
            return None
        if own.get("inplace") and before not in _RESULT_NOT_SAVED:
            return None
        if kind in _NORMS:
            norms.append(layer)
        before = kind
    return norms


def _flat(module: nn.Module) -> Iterator[nn.Module]:
    """The layers of an nn.Sequential and of those within, in order; one with hooks is not
    opened."""
    for layer in module._modules.values():
        if type(layer) is nn.Sequential and not _has_own_hooks(vars(layer)):
            yield from _flat(layer)
        elif layer is not None:
            yield layer
