"""Optimizer steps: one entry each, whatever the optimizer does inside.

torch's global step hooks tell before and after.  The recorder steps aside meanwhile, as a step is
the costliest thing to watch call by call and the least telling: its writes belong to the user's
`optimizer.step()` line.  A step that runs code of the user's (a closure, hooks of their own, an
optimizer class of their own) stays watched.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from operator import attrgetter
from types import FrameType
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence
from torch.autograd.profiler import record_function
from torch.optim.optimizer import (
    Optimizer,
    _global_optimizer_post_hooks,
    _global_optimizer_pre_hooks,
)

from ...isolation.type_checks import class_attribute
from ...live_definitions import code_of
from .event_log import EventLog
from .special_calls import Noting
from .tensor_facts import storage, version
from .watching import Watching

if TYPE_CHECKING:
    from .event_notes import EventNotes
    from .mode_stack import ModeStack

_KEY: Any = "autograd_explain"  #: among torch's global step hooks
_version_of = attrgetter("_version")


class StepHooks(Watching):
    """Torch's hooks of every optimizer's steps.

    `zero_grad` has no hook of torch's, and reads and clears one `.grad` after the other, each
    through the mode: it is wrapped, for the recorder to step aside there too.  So is
    `add_param_group`, which the constructor calls: what a parameter was by then is known.
    """

    def __init__(
        self, recorder: EventNotes, presence: ModeStack, is_user: Callable[[str], bool]
    ) -> None:
        super().__init__(recorder, presence)
        self._is_user = is_user
        self._open: _Step | None = None
        self._users: dict[type, bool] = {}

    def enter(self) -> None:
        # Not by torch's functions: they would count on the numbers that the user's hooks get.
        _global_optimizer_pre_hooks[_KEY] = self._before
        _global_optimizer_post_hooks[_KEY] = self._after
        self._presence.replace(Optimizer, "zero_grad", _watched_zero_grad(self))
        self._presence.replace(Optimizer, "add_param_group", _watched_add_param_group(self))
        # Each step is inside a `record_function` block (torch/optim/optimizer.py).
        self._presence.replace(record_function, "__exit__", self._raised(record_function.__exit__))

    def leave(self) -> None:
        for hooks in (_global_optimizer_pre_hooks, _global_optimizer_post_hooks):
            hooks.pop(_KEY, None)
        self._recover()

    def zero_grad(
        self, run: Callable[..., None], optimizer: Optimizer, args: Any, kwargs: Any
    ) -> None:
        """`optimizer.zero_grad()` with the recorder aside."""
        __tracebackhide__ = True
        if not self._is_watching():
            return run(optimizer, *args, **kwargs)
        with Noting(self._recorder):
            self._recorder.zeroed(optimizer, sys._getframe(2))
        aside = self._presence.step_aside()
        try:
            return run(optimizer, *args, **kwargs)
        finally:
            if aside:
                self._presence.step_back()

    def given(self, optimizer: Optimizer) -> None:
        """An optimizer has got parameters."""
        if self._is_watching():
            with Noting(self._recorder):
                self._recorder.suspicion.given(optimizer)

    def _before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not self._is_watching():
            return
        self._recover()
        aside = self._may_step_aside(optimizer, args, kwargs) and self._presence.step_aside()
        with Noting(self._recorder):
            self._open = _Step(optimizer, aside, self._recorder)
            self._open.begin(sys._getframe(1))

    def _after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        step, self._open = self._open, None
        if step is None or not self._is_own_thread():
            return
        if not self._recorder.rests:  # since the step's closure went backward
            with Noting(self._recorder):
                step.end()
        if step.aside:
            self._presence.step_back()

    def _raised(self, leave_block: Callable[..., Any]) -> Callable[..., Any]:
        """A step that raised never reaches its post hook, but leaves its block."""

        @functools.wraps(leave_block)
        def __exit__(block: record_function, kind: Any, error: Any, traceback: Any) -> Any:
            __tracebackhide__ = True
            result = leave_block(block, kind, error, traceback)
            if kind is not None and self._is_own_thread():
                self._recover()
            return result

        return __exit__

    def _recover(self) -> None:
        step, self._open = self._open, None
        if step is not None and step.aside:
            self._presence.step_back()

    def _may_step_aside(self, optimizer: Optimizer, args: Any, kwargs: Any) -> bool:
        # `args` begins with the optimizer itself; a closure follows.
        if len(args) > 1 and any(a is not None for a in args[1:]):
            return False
        if kwargs and any(v is not None for v in kwargs.values()):
            return False
        if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
            return False
        cls = type(optimizer)
        if cls not in self._users:
            code = code_of(class_attribute(cls, "step"))
            self._users[cls] = code is not None and self._is_user(code.co_filename)
        return not self._users[cls]


def _watched_zero_grad(hooks: StepHooks) -> Callable[..., None]:
    original = Optimizer.zero_grad

    @functools.wraps(original)
    def zero_grad(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        return hooks.zero_grad(original, self, args, kwargs)

    return zero_grad


def _watched_add_param_group(hooks: StepHooks) -> Callable[..., None]:
    original = Optimizer.add_param_group

    @functools.wraps(original)
    def add_param_group(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        original(self, *args, **kwargs)
        hooks.given(self)

    return add_param_group


class _Step:
    """One step from its pre hook to its post hook."""

    def __init__(self, optimizer: Optimizer, aside: bool, recorder: EventNotes) -> None:
        self.aside = aside
        self._optimizer = optimizer
        self._recorder = recorder
        self._parameters: list[Tensor] = []
        self._before: list[int] = []
        self._site = 0

    def begin(self, frame: FrameType) -> None:
        recorder = self._recorder
        self._site = recorder.sites.here(frame, recorder.operations.number("step"))
        groups = self._optimizer.param_groups
        self._parameters = (
            groups[0]["params"]
            if len(groups) == 1
            else [p for group in groups for p in group["params"]]
        )
        self._before = _versions(self._parameters)
        recorder.suspicion.before_step(self._optimizer, self._parameters, self._site)

    def end(self) -> None:
        recorder = self._recorder
        log: EventLog = recorder.log
        now = sequence()
        if now != recorder.seen:  # differentiable=True
            log.made.append((recorder.seen, now, self._site, log.tick()))
            recorder.seen = now
        storages = _storages(self._parameters)
        after = _versions(self._parameters)
        log.step(self._site, storages, self._before, after)
        recorder.suspicion.after_step(
            self._optimizer,
            self._parameters,
            self._before == after,
            log.clock,
            self._site,
            recorder.sites.namespace,
        )


def _versions(tensors: list[Tensor]) -> list[int]:
    try:
        return list(map(_version_of, tensors))
    except RuntimeError:  # an inference tensor among them
        return [version(t) for t in tensors]


def _storages(tensors: list[Tensor]) -> tuple[int, ...]:
    try:
        return tuple([t.untyped_storage()._cdata for t in tensors])
    except (RuntimeError, NotImplementedError):  # one without memory among them
        return tuple(map(storage, tensors))
