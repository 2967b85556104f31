"""Calls that need a look of their own: `.data`, `.grad`, numpy, copies.

Each handler runs the call exactly once and notes afterwards; `Noting` keeps our own questions
from other modes and our own errors from the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence

from .tensor_facts import (
    address,
    is_unasked,
    nested_tensors,
    quiet,
    requires_grad_at_sight,
    storage,
    tensors_in,
)
from .torch_functions import CallKind

if TYPE_CHECKING:
    from .event_notes import EventNotes

#: torch.batch_norm and torch.instance_norm: input, weight, bias, running mean and variance,
#: whether batch statistics are used, momentum, eps, cudnn.
_BATCH_NORM_ARGUMENTS = 9


_CLIPPING = torch.nn.utils.clip_grad.__file__  #: it reads each `.grad`, and clips those that are
#: Factories of what their arguments hold.
_SAMPLES = frozenset({torch.normal})


class Call(NamedTuple):
    """A call on its way through the mode; `frame` is torch's caller."""

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    frame: FrameType
    operation: int

    def run(self) -> Any:
        __tracebackhide__ = True
        return self.func(*self.args, **self.kwargs)


class Noting:
    """While we look: torch functions disabled, an error of ours switches the recorder off."""

    def __init__(self, recorder: EventNotes) -> None:
        self._recorder = recorder
        self._quiet = quiet()

    def __enter__(self) -> None:
        self._quiet.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self._quiet.__exit__(kind, error, traceback)
        if isinstance(error, Exception):
            self._recorder.broken = error
            return True
        return False


class Special:
    """The handlers by kind."""

    def __init__(self, recorder: EventNotes) -> None:
        self._recorder = recorder
        self._log = recorder.log
        self._suspicion = recorder.suspicion
        self._here = recorder.sites.here
        self._zeroed = recorder.zeroed
        self._note_data = recorder.suspicion.got_data
        self._summed = recorder.suspicion.gradients.by_hand.leaves
        methods: Mapping[CallKind, Callable[[Call], Any]] = {
            CallKind.BATCH_NORM: self._batch_norm,
            CallKind.NUMPY: self._numpy,
            CallKind.COPY: self._copy,
            CallKind.HOOK: self._hook,
            CallKind.DETACH: self._detach,
        }
        self.handlers = {int(kind): _taking_apart(method) for kind, method in methods.items()}
        # What loops by hand do in every round is spared the detour.
        self.handlers[int(CallKind.GET_DATA)] = self._get_data
        self.handlers[int(CallKind.SET_DATA)] = self._set_data
        self.handlers[int(CallKind.GET_GRAD)] = self._get_grad
        self.handlers[int(CallKind.SET_GRAD)] = self._set_grad
        self.handlers[int(CallKind.LEAF)] = self._leaf

    def _site(self, call: Call) -> int:
        return self._here(call.frame, call.operation)

    # Memory

    def _batch_norm(self, call: Call) -> Any:
        """Running statistics are written without a bump."""
        __tracebackhide__ = True
        recorder = self._recorder
        if len(call.args) != _BATCH_NORM_ARGUMENTS:  # not torch.batch_norm, as modules call it
            return self._other_norm(call)
        before = sequence()
        result = call.run()
        after = sequence()
        recorder.noted(before, after, call.args, result, call.frame, call.operation)
        if call.args[5]:
            with Noting(recorder):
                self._wrote_statistics(call.args[3:5], self._site(call))
        return result

    def _other_norm(self, call: Call) -> Any:
        """Where the positions differ: buffers among the arguments are running statistics."""
        __tracebackhide__ = True
        recorder = self._recorder
        result = recorder.composite(call.func, call.args, call.kwargs, call.frame, call.operation)
        with Noting(recorder):
            given = tensors_in((*call.args[1:], *call.kwargs.values()))
            buffers = [t for t in given if not t.requires_grad and type(t) is Tensor]
            self._wrote_statistics(buffers, self._site(call))
        return result

    def _wrote_statistics(self, buffers: Iterable[Tensor | None], site: int) -> None:
        for buffer in buffers:
            if buffer is not None:
                self._recorder.wrote_unversioned(buffer, site, own=True)

    def _get_data(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
        operation: int,
    ) -> Any:
        """`.data` gives an alias with a version counter of its own."""
        __tracebackhide__ = True
        result = func(*args)
        source = args[0]
        try:
            if is_unasked(source):
                self._note_data(source, result, self._here(frame, operation))
            else:
                with quiet():
                    self._note_data(source, result, self._here(frame, operation))
        except Exception as error:
            self._recorder.broken = error
        return result

    def _set_data(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
        operation: int,
    ) -> Any:
        """`x.data = y` puts other memory under the same tensor, its version unchanged."""
        __tracebackhide__ = True
        if self._has_memory_of(*args):
            return func(*args)  # so ends `x.data -= y`
        tensor, before = args[0], None
        with Noting(self._recorder):
            old = storage(tensor)
            site = self._recorder.sites.here(frame, operation)
            before = self._suspicion.before_replacing(tensor, site)
        result = func(*args, **kwargs)
        with Noting(self._recorder):
            if storage(tensor) != old:
                clock = self._recorder.wrote_unversioned(tensor, site, own=False)
                self._suspicion.replaced_data(
                    tensor, args[1], clock, site, self._recorder.seen, before
                )
        return result

    def _has_memory_of(self, tensor: Tensor, other: Any) -> bool:
        try:
            if is_unasked(tensor) and type(other) is Tensor:
                return storage(tensor) == storage(other) != 0
            with quiet():
                return isinstance(other, Tensor) and storage(tensor) == storage(other) != 0
        except Exception as error:
            self._recorder.broken = error
        return False

    def _numpy(self, call: Call) -> Any:
        __tracebackhide__ = True
        result = call.run()
        with Noting(self._recorder):
            self._suspicion.to_numpy(call.args[0], self._site(call), self._log.tick())
        return result

    # Leaving the graph

    def _copy(self, call: Call) -> Any:
        """`torch.tensor(x)` and its like make a leaf that has forgotten x's graph."""
        __tracebackhide__ = True
        result = call.run()
        with Noting(self._recorder):
            given = (*call.args, *call.kwargs.values())
            sources = {id(t): t for found in (tensors_in, nested_tensors) for t in found(given)}
            for source in sources.values():
                if source is not result and source.requires_grad:
                    self._suspicion.cut(source, result, self._site(call), "copy")
            self._suspicion.spread(call.args, call.kwargs, result)
            if isinstance(result, Tensor):
                if not sources:
                    data = call.args[0] if call.args else call.kwargs.get("data")
                    self._suspicion.appeared(result, data)
                if result.requires_grad:
                    self._log.leaf(address(result), result, self._site(call))
        return result

    def _detach(self, call: Call) -> Any:
        """`loss.detach_()`: looked at before, while it still has its graph."""
        __tracebackhide__ = True
        with Noting(self._recorder):
            tensor = call.args[0]
            if tensor.requires_grad:
                self._suspicion.cut(tensor, tensor, self._site(call), "detach")
        return call.run()

    def _leaf(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
        operation: int,
    ) -> Any:
        """Factories and `requires_grad_`: a tensor from which gradients start."""
        __tracebackhide__ = True
        off = requires_grad_at_sight(args[:1]) is False
        before = sequence()
        result = func(*args, **kwargs)
        if func in _SAMPLES:
            self._recorder.noted(before, sequence(), args, result, frame, operation)
        made = is_unasked(result) and not result.requires_grad and result is not _first(args)
        if not made or func in _SAMPLES:  # else it is a factory, and no gradient starts there
            self._note_leaf(Call(func, args, kwargs, frame, operation), result, off)
        return result

    def _note_leaf(self, call: Call, result: Any, off: bool) -> None:
        with Noting(self._recorder):
            made = result if isinstance(result, Tensor) else call.args[0] if call.args else None
            if call.func in _SAMPLES:
                self._suspicion.spread(call.args, call.kwargs, result)
            if not isinstance(made, Tensor):
                return
            was_there = made is _first(call.args)
            if made.requires_grad:
                self._log.leaf(address(made), made, self._site(call), off and was_there)
            elif was_there:
                self._log.freeze(address(made), made, self._site(call), not off)

    # Gradients

    def _get_grad(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
        operation: int,
    ) -> Any:
        """`x.grad`: has a backward added to what was read before?  Is there what is clipped?"""
        __tracebackhide__ = True
        result = func(*args)
        if frame.f_code.co_filename == _CLIPPING:
            with Noting(self._recorder):
                site = self._here(frame, operation)
                self._suspicion.clipped(args[0], result is not None, site)
        elif result is not None:
            self._suspicion.gradients.was_read = self._log.clock
        if id(args[0]) in self._summed:
            with Noting(self._recorder):
                self._suspicion.read_gradient(args[0], self._here(frame, operation))
        return result

    def _set_grad(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
        operation: int,
    ) -> Any:
        """`p.grad = None`, as Module.zero_grad does (Optimizer.zero_grad is seen elsewhere)."""
        __tracebackhide__ = True
        result = func(*args)
        try:
            self._zeroed(None, frame)  # which asks no tensor
        except Exception as error:
            self._recorder.broken = error
        return result

    def _hook(self, call: Call) -> Any:
        __tracebackhide__ = True
        self._log.user_code_in_backward = True
        return call.run()


def _first(args: tuple[Any, ...]) -> Any:
    return args[0] if args else None


def _taking_apart(method: Callable[[Call], Any]) -> Callable[..., Any]:
    def handle(*parts: Any) -> Any:
        __tracebackhide__ = True
        return method(Call(*parts))

    return handle
