"""Backwards, seen where torch hands them to its engine.

`Tensor.backward`, `torch.autograd.backward` and `torch.autograd.grad` all end there, whoever
imported them when.  A backward inside a backward costs one frame of the stack: torch's limit on
their depth is not ours to lower.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch._C._autograd import _get_sequence_nr as sequence

from ...nodes import CREATE_GRAPH, INPUTS
from .mode_stack import has_torch_function, method_has_torch_function
from .rest import Rest
from .special_calls import Noting
from .tensor_facts import quiet, tensors_in
from .watching import Watching

if TYPE_CHECKING:
    from .event_notes import EventNotes
    from .mode_stack import ModeStack

_ENGINE = "_engine_run_backward"
#: Looks at the roots and makes the gradient that a backward begins with.
_PREPARE = "_make_grads"
#: Modules whose frames stand between the caller of a backward and the engine.
_BETWEEN = ("torch.autograd", "torch._tensor", "torch.overrides")
_OURS = f"{__package__}."


class Backwards(Watching):
    """Notes backwards; `rest` says when enough has been seen, where that may be."""

    def __init__(self, recorder: EventNotes, presence: ModeStack, rest: Rest | None) -> None:
        super().__init__(recorder, presence)
        self._running = False
        self._rest = rest
        number = recorder.operations.number
        self._operations = {True: number("backward"), False: number("grad")}

    def enter(self) -> None:
        replace = self._presence.replace
        replace(torch.autograd, _ENGINE, self._watched(getattr(torch.autograd, _ENGINE)))
        prepare = getattr(torch.autograd, _PREPARE, None)
        if prepare is not None:  # private
            replace(torch.autograd, _PREPARE, self._presence.aside(prepare))
        # The recorder need not be asked before.
        replace(torch.autograd, "has_torch_function", has_torch_function)
        replace(torch._tensor, "has_torch_function_unary", method_has_torch_function)

    def _watched(self, engine: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(engine)
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if self._running or not self._is_watching() or self._rests():
                return engine(outputs, *args, **kwargs)
            whole = kwargs.get("accumulate_grad") is True
            recorded = any(args[CREATE_GRAPH : CREATE_GRAPH + 1])
            site = self._before(sys._getframe(1), outputs, args[INPUTS : INPUTS + 1], whole)
            if not whole and not recorded:
                self._without_graph(outputs, site)
            before = sequence()
            leave = self._go_inside()
            try:
                result = engine(outputs, *args, **kwargs)
            finally:
                self._running = False
                leave()
            self._after(before, site)
            if not whole and recorded:
                with Noting(self._recorder):
                    roots, results = (tuple(tensors_in((t,))) for t in (outputs, result))
                    self._recorder.suspicion.derived(roots, results, site)
            return result

        return run

    def _rests(self) -> bool:
        """Whether enough has been seen: between two rounds a cell may end as well."""
        rest, log, sites = self._rest, self._recorder.log, self._recorder.sites
        due = rest is not None and rest.is_due(len(sites.all), log.clock)
        return due and self._presence.rest()

    def _go_inside(self) -> Callable[[], object]:
        """The mode is in force inside where code of the user's may run, else out of the way; what
        puts that back."""
        presence = self._presence
        self._running = True
        if not self._recorder.log.user_code_in_backward:
            return presence.step_back if presence.step_aside() else bool
        return presence.step_aside if presence.step_in() else bool

    def _before(self, frame: FrameType, outputs: Any, inputs: Sequence[Any], whole: bool) -> int:
        recorder, caller, site = self._recorder, _caller(frame), 0
        try:
            with quiet():
                if caller is not None and sequence() != recorder.seen:
                    recorder.made_unseen(sequence(), caller)
                site = recorder.sites.here(caller, self._operations[whole])
                clock = recorder.log.landmark(site, "backward")
                roots, wanted = tuple(tensors_in((outputs,))), tuple(tensors_in(inputs)) or None
                recorder.suspicion.before_backward(roots, wanted, clock, site, whole)
        except Exception as error:
            recorder.broken = error
        return site

    def _without_graph(self, outputs: Any, site: int) -> None:
        """The derivatives that torch.autograd.grad is about to give have no graph."""
        with Noting(self._recorder):
            self._recorder.suspicion.derivatives(tuple(tensors_in((outputs,))), site)

    def _after(self, before: int, site: int) -> None:
        recorder = self._recorder
        try:
            with quiet():
                after = sequence()
                if after != before:  # create_graph=True
                    recorder.log.made.append((before, after, site, recorder.log.tick()))
                    recorder.seen = after
                recorder.suspicion.after_backward()
        except Exception as error:
            recorder.broken = error


def _caller(frame: FrameType | None) -> FrameType | None:
    """Who asked for a backward."""
    while frame is not None and _is_between(str(frame.f_globals.get("__name__"))):
        frame = frame.f_back
    return frame


def _is_between(module: str) -> bool:
    return module in _BETWEEN or module.startswith(_OURS)
