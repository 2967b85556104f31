"""When the recorder is on torch's stack of function modes, and when it steps aside.

It is never traced: torch.compile would write a mode that it finds into the program, so the
recorder leaves the stack while dynamo's frame evaluation is on.  torch.jit.trace would find its
frame above the program's, from which it takes the names of values.  And it is never asked for: code
of torch's that chooses its path by whether a mode listens is answered as if none did.  Otherwise
nn.TransformerEncoderLayer and nn.MultiheadAttention leave their fast path, which changes the last
bits of their result, and each function of nn.functional hands itself over to the recorder first,
at the price of several operations; what it calls is seen all the same.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch._C._autograd import _get_sequence_nr as sequence
from torch.autograd.profiler import record_function
from torch.utils._device import DeviceContext

if TYPE_CHECKING:
    from .function_mode import Recorder

_count = torch._C._len_torch_function_stack
_at = torch._C._get_function_stack_at
_push = torch._C._push_on_torch_function_stack
_pop = torch._C._pop_torch_function_stack
_EVAL_FRAME = "torch._dynamo.eval_frame"
#: The operation of nodes that compiled code made.
COMPILED = "compiled"
#: dynamo's own names for switching frame evaluation on (a callback) and off (None).
_SWITCHES = ("set_eval_frame", "_maybe_set_eval_frame")
#: Where torch.jit runs what it traces; private, each is optional.
_TRACERS = (
    (torch._C, "_create_graph_by_tracing"),
    (torch._C, "_create_function_from_trace"),
    (torch._C, "_create_function_from_trace_with_dict"),
    (torch._C.ScriptModule, "_create_method_from_trace"),
    (torch._C.ScriptModule, "_create_method_from_trace_with_dict"),
)
_asked = torch.overrides.has_torch_function
_asked_unary = torch.overrides.has_torch_function_unary
_asked_variadic = torch.overrides.has_torch_function_variadic
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, type(None), int, float, bool, complex})
#: Methods that are not handed over to the recorder: a backward is seen on its way to the engine,
#: and `dim_order` forgets an argument (torch/_tensor.py).
_NOT_HANDED_OVER = frozenset(
    getattr(vars(torch.Tensor).get(name), "__code__", None) for name in ("backward", "dim_order")
)
_INHERITED = object()  # what a class has from its base
_watching: list[ModeStack] = []
_recorders: list[Recorder | None] = [None]  #: the last one is that of the cell being watched


def has_torch_function(relevant_args: Any) -> bool:
    """`torch.overrides.has_torch_function` as it answers without a recorder."""
    if _PLAIN.issuperset(map(type, relevant_args)) and _count() == 1 and _at(0) is _recorders[-1]:
        return False
    present = _watching[-1] if _watching else None
    aside = present is not None and present.step_aside()
    try:
        return bool(_asked(relevant_args))
    finally:
        if aside and present is not None:
            present.step_back()


def has_torch_function_unary(obj: Any) -> bool:
    """As torch's own, blind to a recorder that is alone on the stack."""
    if type(obj) in _PLAIN and _count() == 1 and _at(0) is _recorders[-1]:
        return False
    return bool(_asked_unary(obj))


def has_torch_function_variadic(*objs: Any) -> bool:
    """As torch's own, blind to a recorder that is alone on the stack."""
    if _PLAIN.issuperset(map(type, objs)) and _count() == 1 and _at(0) is _recorders[-1]:
        return False
    return bool(_asked_variadic(*objs))


def method_has_torch_function(obj: Any) -> bool:
    """`has_torch_function_unary` for the methods of `torch.Tensor`."""
    if sys._getframe(1).f_code in _NOT_HANDED_OVER:
        return has_torch_function_unary(obj)
    return bool(_asked_unary(obj))


# torch.jit.script knows the originals by their identity (torch/jit/_script.py, one name for all).
with suppress(Exception):
    for _ours in (has_torch_function, has_torch_function_unary, has_torch_function_variadic):
        sys.modules["torch.jit._builtins"]._register_builtin(_ours, "aten::has_torch_function")


class ModeStack:
    """Puts a recorder on the stack and takes it off; `limits` says what was not watched."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._compile = torch.compile
        self._switches: dict[str, Callable[[Any], Any]] = {}
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self.limits: set[str] = set()
        self._compiling = 0  # the frame that went over to compiled code

    # A watched cell

    def enter(self) -> None:
        # Modules that choose a path ask through `torch.overrides`; functions that hand themselves
        # over imported theirs by name, and so did the operators that are written in Python
        # (`x ** 2`, `1 - x`: handing one over costs several operations).
        for module in (torch.overrides, torch.functional, torch._tensor):
            self.replace(module, "has_torch_function", has_torch_function)
        for function in (has_torch_function_unary, has_torch_function_variadic):
            self.replace(torch.nn.functional, function.__name__, function)
        for name in ("__enter__", "__exit__"):  # each optimizer step is inside one
            self.replace(record_function, name, self.aside(getattr(record_function, name)))
        for owner, name in _TRACERS:
            if name in vars(owner):
                self.replace(owner, name, self._unwatched(getattr(owner, name)))
        _watching.append(self)
        _recorders.append(self.recorder)
        if not self._patch_dynamo():
            torch.compile = self._compile_later
        self._insert()

    def leave(self) -> None:
        if not self._remove() and not self.recorder.rests:
            self.limits.add("mode_removed")
        _watching.remove(self)
        _recorders.remove(self.recorder)
        self._put_back()
        if torch.compile == self._compile_later:
            torch.compile = self._compile
        module = sys.modules.get(_EVAL_FRAME)
        for name, original in self._switches.items():
            setattr(module, name, original)
        self._switches.clear()

    # Attributes of torch's that have another value while a cell is watched

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Give an attribute another value until `leave`, and not for what dynamo compiles."""
        self._replaced.append((owner, name, vars(owner).get(name, _INHERITED), value))
        setattr(owner, name, value)

    def _put_back(self) -> None:
        for owner, name, original, ours in reversed(self._replaced):
            if vars(owner).get(name) is not ours:
                continue  # somebody else's by now
            if original is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, original)

    def _put_in(self) -> None:
        for owner, name, original, ours in self._replaced:
            if vars(owner).get(name, _INHERITED) is original:
                setattr(owner, name, ours)

    # Stepping aside

    def step_aside(self) -> bool:
        """Leave the stack; False, and nothing done, where another mode stands above."""
        if not self.is_on_top():
            return False
        _pop()
        return True

    def rest(self) -> bool:
        """Leave for the remainder of the cell; False, and nothing done, where another mode stands
        above."""
        self.recorder.rests = self._out_of("rested")
        return self.recorder.rests

    def is_on_top(self) -> bool:
        """Whether torch asks the recorder first."""
        count = _count()
        return count > 0 and _at(count - 1) is self.recorder

    def step_back(self) -> None:
        """Return to the stack after `step_aside`."""
        if self.recorder.rests:
            return
        if _count() == 0 or not any(_at(i) is self.recorder for i in range(_count())):
            _push(self.recorder)

    def step_in(self) -> bool:
        """Be in force where no mode is; False, and nothing done, where one is."""
        if _count():
            return False
        _push(self.recorder)
        return True

    def _insert(self) -> None:
        """Go below the modes that the program has entered, which it may leave in this cell: each
        takes the topmost one off.  The mode for a default device has to stay the lowest."""
        above: list[Any] = []
        while _count() and not isinstance(_at(_count() - 1), DeviceContext):
            above.append(_pop())
        _push(self.recorder)
        for mode in reversed(above):
            _push(mode)

    def _remove(self) -> bool:
        above = []
        found = False
        while not found and _count():
            mode = _pop()
            found = mode is self.recorder
            if not found:
                above.append(mode)
        for mode in reversed(above):
            _push(mode)
        return found

    def aside(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method of torch's during which there is nothing to note."""

        @functools.wraps(method)
        def run(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            aside = self.step_aside()
            try:
                return method(*args, **kwargs)
            finally:
                if aside:
                    self.step_back()

        return run

    def _out_of(self, what: str) -> bool:
        """Leave no trace of ours in code that is compiled or traced; False where another mode
        stands above."""
        if not self.step_aside():
            return False
        self.limits.add(what)
        self._put_back()
        return True

    def _after(self, what: str, frame: FrameType) -> None:
        """Be back.  Nodes made meanwhile belong to the line that made the call."""
        recorder = self.recorder
        self._put_in()
        self.step_back()
        now = sequence()
        if now != recorder.seen:
            recorder.noted(recorder.seen, now, (), None, frame, recorder.operations.number(what))

    def _unwatched(self, tracer: Callable[..., Any]) -> Callable[..., Any]:
        """A function of torch's that traces: what it runs meets nothing of ours."""

        @functools.wraps(tracer)
        def run(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            aside = self._out_of("traced")
            try:
                return tracer(*args, **kwargs)
            finally:
                if aside:
                    self._after("traced", sys._getframe(1))

        return run

    # torch.compile

    def _compile_later(self, *args: Any, **kwargs: Any) -> Any:
        """torch.compile imports dynamo; then its switches can be followed."""
        result = self._compile(*args, **kwargs)
        if self._patch_dynamo():
            torch.compile = self._compile
        return result

    def _patch_dynamo(self) -> bool:
        module = sys.modules.get(_EVAL_FRAME)
        if module is None:
            return False
        for name in _SWITCHES:
            original = getattr(module, name, None)
            if original is None:
                self.limits.add("compile_not_followed")
            elif name not in self._switches:
                self._switches[name] = original
                setattr(module, name, self._following(original))
        return True

    def _following(self, switch: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def follow(callback: Any) -> Any:
            frame = sys._getframe(1)
            if callback is not None:
                if self._out_of(COMPILED):
                    self._compiling = id(frame)
                return switch(callback)
            prior = switch(callback)
            if prior is not None and not _is_inside(self._compiling, frame):
                self._after(COMPILED, frame)
            return prior

        return follow


def _is_inside(outer: int, frame: FrameType) -> bool:
    """Whether a frame below this one switched compiled code on: a function that is left out of the
    compilation (2.10 to 2.12 run the compiled graph as one) switches it off for itself alone."""
    below = frame.f_back
    while below is not None and id(below) != outer:
        below = below.f_back
    return below is not None
