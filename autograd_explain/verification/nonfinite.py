"""Where numbers stop being finite: the operation whose derivative, or whose result, is none.

The cell runs once more and each backward is looked at behind it.  The first one that leaves a
gradient with an infinity or a NaN is run again over the graph that it was kept from freeing: the
first node that gets finite gradients and gives others is where they come from.  Its operation is
then computed alone, with other inputs at the elements in question, which shows the operand that
is to be changed, and how far.  A loss that is no number itself is followed back through a second
run, in which every result is looked at.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import torch
from torch._C._autograd import _get_sequence_nr as sequence

from ..isolation.type_checks import class_attribute
from ..live_definitions import code_of
from ..nodes import GraphTraversal
from ..program import is_library
from . import cells
from .gradient_log import MAX_NODES, leaves_of
from .history_mode import BackwardMode
from .nonfinite_operand import Call, Operand, operand_of
from .objects import names_in
from .plan import UNREPAIRED, CodeRange, NonFinite, Stage, is_of_anomaly_mode
from .reference import replaced
from .running import RunningFunctions
from .tracked import tensors_in

_MAX_FRAMES = 8
#: Functions that put in the infinity that they are given.
_FILLS = frozenset({"masked_fill", "masked_fill_", "full", "full_like", "fill_", "where", "tensor"})
#: What stands between a call in the user's line and the function mode.
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_THIN = ("torch/overrides.py", "torch/_tensor.py", "torch/utils/_contextlib.py")


class Found(BaseException):
    """Ends a run that has shown what it is for; no `except Exception` of the user's stops it."""


class NonFiniteGradients(BackwardMode):
    """Ends the run at the first backward that makes gradients which are not finite.

    With `values` each result is looked at, so that a loss which is no number can be followed back.
    """

    def __init__(
        self, namespace: Mapping[str, Any], running: RunningFunctions, values: bool = False
    ) -> None:
        super().__init__()
        self._namespace = namespace
        self._running = running
        self.found: NonFinite | None = None
        self._values = _Values() if values else None
        self._calls: list[Call] = []
        self._earlier: list[Call] = []  # of graphs that outlive a backward
        self._inside = False
        self._scaled: list[Any] = []

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        first = sequence()
        given = list(tensors_in((*args, *kwargs.values())))
        versions = tuple(t._version if not t.is_inference() else 0 for t in given)
        wrong = self._values.wrong(given) if self._values is not None else ()
        result = func(*args, **kwargs)
        call = None
        if sequence() > first:
            call = Call(func, args, kwargs, versions, first, sequence(), frames(), is_direct())
            self._calls.append(call)
        if self._values is not None:
            call = call or Call(func, args, kwargs, versions, first, first, frames(), is_direct())
            self._values.note(call, wrong, result)
        return result

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Run the body; a loss that a GradScaler has scaled may overflow."""
        with replaced(torch.amp.GradScaler, "scale", self._scaling), super().watch():
            yield

    def _scaling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if scaler.is_enabled():
                self._scaled += tensors_in((result,))
            return result

        return scale

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            scaled = any(t is root for t in self._scaled for root in outputs)
            if self._inside or self.found is not None or scaled:
                return original(outputs, *args, **kwargs)
            kept = args if len(args) < 2 else (args[0], True, *args[2:])  # retain_graph
            self._inside = True
            try:
                result = original(outputs, *kept, **kwargs)
                with torch._C.DisableTorchFunctionSubclass():
                    lost = [t for t, g in _results(outputs, result, args, kwargs) if is_wrong(g)]
                    if lost:
                        self._explain(original, outputs, kept, kwargs)
                        self._name(lost)
            except RuntimeError as error:
                if not is_of_anomaly_mode(str(error)):
                    raise
                with torch._C.DisableTorchFunctionSubclass():
                    self._explain(original, outputs, kept, kwargs)
            finally:
                self._inside = False
            if self.found is not None:
                raise Found
            self._earlier, self._calls = self._calls, []
            return result

        return run

    def _explain(
        self, original: Callable[..., Any], outputs: Any, args: tuple[Any, ...], kwargs: Any
    ) -> None:
        at = frames()
        roots = [t for t in outputs if isinstance(t, torch.Tensor)]
        given = list(tensors_in((args[0],))) if args else []
        if not _is_fine((*roots, *given)):
            self.found = NonFinite(Stage.VALUE, at)
            if self._values is not None:
                self.found = self._values.origin(roots, at) or self.found
            return
        node = _first_node(original, outputs, args, kwargs)
        self.found = NonFinite(Stage.UNKNOWN, at)
        if node is not None:
            self.found = self._told(node, at)

    def _name(self, lost: Sequence[Any]) -> None:
        named = self._running.names_of({id(t) for t in lost}) | names_in(self._namespace)
        names = tuple(named[id(t)] for t in lost if id(t) in named)
        if self.found is not None:
            self.found = replace(self.found, leaves=names)

    def _told(self, node: _Node, at: tuple[CodeRange, ...]) -> NonFinite:
        call = next((c for c in (*self._calls, *self._earlier) if c.made(node.number)), None)
        if call is None:
            return NonFinite(Stage.DERIVATIVE, at, own_backward(node.node), node.name)
        operand = operand_of(call, node.given)
        lost = [t for t in call.given if is_wrong(t)]
        if lost and self._values is not None:
            behind = self._values.origin(lost, at)
            if behind is not None and behind.stage is Stage.VALUE:
                return replace(behind, stage=Stage.DERIVATIVE)
        return _described(Stage.DERIVATIVE, at, call, operand, node.name)


def _described(
    stage: Stage, at: tuple[CodeRange, ...], call: Call, operand: Operand | None, node: str = ""
) -> NonFinite:
    found = operand or Operand()
    number, repair = (found.number, found.repair) if call.direct else (-1, UNREPAIRED)
    given = any(is_wrong(t) for t in call.given)
    return NonFinite(stage, at, call.frames, node, call.name, number, found.value, repair, given)


def _results(
    outputs: Any, result: Any, args: tuple[Any, ...], kwargs: Any
) -> list[tuple[Any, torch.Tensor]]:
    """What got a gradient, and the gradient."""
    if kwargs.get("accumulate_grad"):
        leaves = leaves_of([t for t in outputs if isinstance(t, torch.Tensor)])[0]
        pairs: Iterable[tuple[Any, Any]] = ((leaf, leaf.grad) for leaf in leaves)
    else:
        pairs = zip(args[3] if len(args) > 3 else (), result or (), strict=False)
    return [(t, g) for t, g in pairs if isinstance(g, torch.Tensor)]


class _Node:
    """A node that got finite gradients, `given`, and gave others."""

    def __init__(self, node: Any, given: tuple[Any, ...]) -> None:
        self.node, self.given = node, given
        self.number, self.name = node._sequence_nr(), str(node.name())


def _first_node(
    original: Callable[..., Any], outputs: Any, args: tuple[Any, ...], kwargs: Any
) -> _Node | None:
    """Runs the backward again, with a look behind each node."""
    found: list[_Node] = []
    starts = (t.grad_fn for t in outputs if isinstance(t, torch.Tensor))

    def looking(node: Any) -> Callable[[Any, Any], None]:
        def look(gave: Any, got: Any) -> None:
            if not found and not _is_fine(tensors_in(gave)) and _is_fine(tensors_in(got)):
                found.append(_Node(node, tuple(got)))

        return look

    for reached in GraphTraversal(starts, limit=MAX_NODES):
        if hasattr(reached.node, "register_hook") and not hasattr(reached.node, "variable"):
            reached.node.register_hook(looking(reached.node))
    try:
        original(outputs, *args, **kwargs)
    except Exception:  # a backward of the user's own may bear no second run
        return found[0] if found else None
    return found[0] if found else None


def _is_fine(values: Iterable[Any]) -> bool:
    return not any(isinstance(t, torch.Tensor) and is_wrong(t) for t in values)


def is_zero(tensor: torch.Tensor) -> bool:
    """Whether every number in it is known to be 0."""
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        return False
    with torch.no_grad():
        return not bool(tensor.detach().any())


def is_wrong(tensor: torch.Tensor, nan_only: bool = False) -> bool:
    """Whether it holds an infinity or a NaN."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.device.type == "meta":
        return False
    with torch.no_grad():
        held = tensor.detach()
        held = held.coalesce().values() if held.layout == torch.sparse_coo else held
        if held.layout != torch.strided:
            return False
        return bool(held.isnan().any() if nan_only else not held.isfinite().all())


def frames() -> tuple[CodeRange, ...]:
    """Where the program stands, innermost of the user's lines first."""
    found: list[CodeRange] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < _MAX_FRAMES:
        code = frame.f_code
        if code.co_filename == cells.__file__:
            break
        if not is_library(code.co_filename) and not code.co_filename.startswith("<frozen"):
            found.append(CodeRange(code.co_filename, frame.f_lineno, _columns(frame)))
        frame = frame.f_back
    return tuple(found)


def is_direct() -> bool:
    """Whether the user's own line calls the function of torch's, no library in between."""
    frame = torch_caller()
    return frame is not None and not is_library(frame.f_code.co_filename)


def torch_caller() -> FrameType | None:
    """What calls the function of torch's that is looked at."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_thin(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _is_thin(filename: str) -> bool:
    return filename.startswith(_OWN) or filename.replace("\\", "/").endswith(_THIN)


def _columns(frame: Any) -> tuple[int, int, int, int] | None:
    """First and last line and column of what is evaluated; Python 3.10 does not know them."""
    if sys.version_info < (3, 11):
        return None
    for number, found in enumerate(frame.f_code.co_positions()):
        if number == frame.f_lasti // 2:
            return None if None in found else found
    return None


def own_backward(node: Any) -> tuple[CodeRange, ...]:
    """The `backward` of a Function of the user's."""
    made_of: Any = getattr(node, "_forward_cls", None) or getattr(type(node), "_forward_cls", None)
    code = None if made_of is None else code_of(class_attribute(made_of, "backward"))
    known = code is not None and not is_library(code.co_filename)
    return (CodeRange(code.co_filename, code.co_firstlineno, None),) if known and code else ()


class _Values:
    """Which results are not finite, and what they were computed from."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[torch.Tensor, Call, Sequence[torch.Tensor]]] = {}

    def wrong(self, given: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        with torch._C.DisableTorchFunctionSubclass():
            return [t for t in given if is_wrong(t)]

    def note(self, call: Call, wrong: Sequence[torch.Tensor], result: Any) -> None:
        with torch._C.DisableTorchFunctionSubclass():
            for made in tensors_in((result,)):
                if made.dtype.is_floating_point and is_wrong(made):
                    same = any(t is made for t in wrong)
                    if not same or made._version != call.version_of(made):
                        self._made[id(made)] = made, call, wrong

    def origin(self, roots: Iterable[torch.Tensor], at: tuple[CodeRange, ...]) -> NonFinite | None:
        """The first operation behind a root that made it of finite numbers; else what was given."""
        root = next((t for t in roots if is_wrong(t)), None)
        return None if root is None else self._follow(root, at)

    def _follow(self, tensor: torch.Tensor, at: tuple[CodeRange, ...]) -> NonFinite | None:
        last: Call | None = None
        seen: set[int] = set()
        while (made := self._made.get(id(tensor))) is not None and id(tensor) not in seen:
            seen.add(id(tensor))
            _, call, wrong = made
            if not call.given:  # made of Python's numbers
                break
            last = call
            nan = is_wrong(tensor, nan_only=True)
            nans = [t for t in wrong if is_wrong(t, nan_only=True)] if nan else []
            behind = next(iter(nans or [t for t in wrong if not self._was_filled(t)]), None)
            if behind is None:
                return _described(Stage.VALUE, at, last, operand_of(last, ()))
            tensor = behind
        if last is None:
            return None
        number = last.number_of(tensor)
        value = "nan" if is_wrong(tensor, nan_only=True) else "inf"
        return _described(Stage.INPUT, at, last, Operand(number, value))

    def _was_filled(self, tensor: torch.Tensor) -> bool:
        """Whether the program itself put an infinity there, as a mask does."""
        made = self._made.get(id(tensor))
        if made is None:
            return False
        _, call, wrong = made
        return (call.name in _FILLS and not wrong) or any(self._was_filled(t) for t in wrong)
