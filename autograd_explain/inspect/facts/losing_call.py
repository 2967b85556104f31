"""The call of a library on the way to a value without a graph, as text and live objects tell it."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from ...arguments import values_given
from ...isolation.type_checks import class_attribute, table_of
from ...model import Place
from ...program import is_installed, own_nodes
from ..dataflow import ExprAt
from ..dataflow.safe_lookup import MISSING
from ..history import TraceEvent
from ..scene import Scene
from .expressions import computation, expression_at
from .value_names import read_with_gradient

_OFF = ("no_grad", "inference_mode")
CONTEXTS = torch.utils._contextlib.__file__  #: torch's code for a mode given as a decorator


@dataclass(frozen=True)
class Undecorated:
    """A call of what a decorator runs without recording: of an object, which runs its `method`
    (`forward` of a module), of a method (""), or of a plain function (`alone`).  Behind `levels`
    decorators it records."""

    place: Place
    method: str
    alone: bool = False
    levels: int = 1


def losing_call(scene: Scene, root: ExprAt, handed: bool = False) -> TraceEvent | None:
    """The nearest call of an installed package behind `root` that had something with gradient to
    work with: an argument, a parameter of what it was called on, or what that was given before;
    only the first of these where it was to be `handed` in."""
    for call in _library_calls(scene, root):
        if handed:
            given = call if _is_given_gradient(scene, call) else None
        else:
            given = call if _works_with_gradient(scene, call) else _fed(scene, call)
        if given is not None:
            function = _function(scene, given)
            inside = None if function is None else _line_that_cuts(function)
            return TraceEvent(0, scene.slicer.place(given), given.called, inside=inside)
    return None


def gathering_calls(scene: Scene, root: ExprAt | None) -> tuple[Place, ...]:
    """The calls that gave objects of a library something with gradient, where what `root` was
    computed from asks the objects for what they have gathered: each `m.update(out, y)`."""
    calls = () if root is None else _library_calls(scene, root)
    asked = (c for c in calls if not _works_with_gradient(scene, c))
    given = (scene.place_at(_fed(scene, call)) for call in asked)
    return tuple(dict.fromkeys(place for place in given if place is not None))


def handed_with_gradient(scene: Scene, place: Place) -> dict[str, torch.Tensor | None]:
    """What a call of a library reads with gradient in its arguments, by what the user calls it."""
    call = expression_at(scene, place)
    given = values_given(call.node) if call is not None and isinstance(call.node, ast.Call) else ()
    found = dict[str, torch.Tensor | None]()
    for value in given:
        found.update(read_with_gradient(scene, call.inside(value)) if call is not None else {})
    return found


def undecorated(scene: Scene, root: ExprAt | None) -> tuple[Undecorated, ...]:
    """The calls behind `root` of functions of a library that a decorator runs without recording,
    where what it wraps can be called instead."""
    calls = () if root is None else _library_calls(scene, root)
    found = [u for call in calls if (u := undecorated_call(scene, call)) is not None]
    return tuple({u.place: u for u in found}.values())


def undecorated_call(scene: Scene, call: ExprAt) -> Undecorated | None:
    """The call, where it is one of these."""
    place, function = scene.place_at(call), call.callable
    value = MISSING if function is None else scene.slicer.value(function)
    method, alone = _run_by_call(value), isinstance(value, types.FunctionType)
    known = method or alone or call.receiver
    if place is None or not known or not _is_decorated(scene, call):
        return None
    return Undecorated(place, method, alone, _levels(_function(scene, call)))


def _library_calls(scene: Scene, root: ExprAt) -> Iterator[ExprAt]:
    for spot in (*scene.slicer.makers(root), *computation(scene, root)):
        if isinstance(spot.node, ast.Call) and _function(scene, spot) is not None:
            yield spot


def _function(scene: Scene, call: ExprAt) -> types.FunctionType | None:
    """The function of an installed package that a call runs; None for any other, torch's too."""
    value = _plain(called_object(scene, call))
    inner = None if value is None else _innermost(value)
    if inner is None or not is_installed(inner.__code__.co_filename):
        return None
    return None if str(inner.__module__).partition(".")[0] in ("torch", "numpy") else value


def _plain(value: Any) -> types.FunctionType | None:
    value = value.__func__ if isinstance(value, types.MethodType) else value
    return value if isinstance(value, types.FunctionType) else None


def _innermost(function: types.FunctionType) -> types.FunctionType | None:
    """What decorators have wrapped."""
    return _plain(inspect.unwrap(function))


def called_object(scene: Scene, call: ExprAt) -> Any:
    """What a call calls, a method of a live object by its class; MISSING where it is not known."""
    value = MISSING if call.callable is None else scene.slicer.value(call.callable)
    node = call.node.func if isinstance(call.node, ast.Call) else None
    if value is MISSING and call.receiver is not None and isinstance(node, ast.Attribute):
        owner = scene.slicer.value(call.receiver)
        owner = owner if isinstance(owner, type) or owner is MISSING else type(owner)
        value = MISSING if owner is MISSING else class_attribute(owner, node.attr, MISSING)
    if method := _run_by_call(value):
        return class_attribute(type(value), method)
    return value.__func__ if isinstance(value, (classmethod, staticmethod)) else value


def _run_by_call(value: Any) -> str:
    """The method that a call of an object runs; "" for functions, methods, classes."""
    if isinstance(value, torch.nn.Module):
        return "forward"
    plain = isinstance(value, (type, types.FunctionType, types.MethodType))
    called = MISSING if plain else class_attribute(type(value), "__call__")
    return "__call__" if isinstance(called, types.FunctionType) else ""


def _works_with_gradient(scene: Scene, call: ExprAt) -> bool:
    owner = MISSING if call.receiver is None else scene.slicer.value(call.receiver)
    held = [owner, *table_of(owner).values()] if owner is not MISSING else []
    modules = [m for m in held if isinstance(m, torch.nn.Module)]
    trained = any(p.requires_grad for m in modules for p in m.parameters())
    return trained or _is_given_gradient(scene, call)


def _is_given_gradient(scene: Scene, call: ExprAt) -> bool:
    return any(scene.gradient_tracer.trace(o).carries for o in scene.slicer.operands(call))


def _fed(scene: Scene, call: ExprAt) -> ExprAt | None:
    """The last call of another method of the same object before it that was given gradient:
    `metric.update(out, y)` for `metric.compute()`."""
    owner = MISSING if call.receiver is None else scene.slicer.value(call.receiver)
    if owner is MISSING:
        return None
    beside = {id(n) for n in own_nodes(call.scope.body)}  # called with the same arguments
    for source, node in scene.index.nodes(ast.Call, newest_first=True):
        other = call.inside(node) if id(node) in beside else scene.slicer.at(source, node)
        same = other.receiver is not None and scene.slicer.value(other.receiver) is owner
        if same and other.called != call.called and _is_given_gradient(scene, other):
            return other
    return None


def _is_decorated(scene: Scene, call: ExprAt) -> bool:
    function = _function(scene, call)
    wrapped = getattr(function, "__wrapped__", None)
    line = _line_that_cuts(wrapped) if isinstance(wrapped, types.FunctionType) else None
    return line is not None and line.source.startswith("@")


def _levels(function: types.FunctionType | None) -> int:
    """How many decorators lie around what the one that turns recording off wraps: others may lie
    around that one.  torch makes it by `context_decorator` (torch/utils/_contextlib.py)."""
    wrappers = []
    while isinstance(getattr(function, "__wrapped__", None), types.FunctionType):
        wrappers.append(function)
        function = function.__wrapped__  # type: ignore[union-attr]
    switching = [i for i, w in enumerate(wrappers, 1) if w and _is_context(w.__code__)]
    return max(switching, default=1)


def _is_context(code: types.CodeType) -> bool:
    return code.co_name == "decorate_context" and code.co_filename == CONTEXTS


def _line_that_cuts(function: types.FunctionType) -> Place | None:
    """The line of a library's function that turns recording off, or its only one that detaches."""
    innermost = _innermost(function)
    if innermost is None:
        return None
    with suppress(OSError, TypeError, ValueError):
        inner = innermost.__code__
        lines, first = inspect.getsourcelines(inner)
        numbered = [(first + i, line.strip()) for i, line in enumerate(lines)]
        off = [(n, s) for n, s in numbered if s.startswith(("@", "with ")) and _names(s, _OFF)]
        ends = [(n, s) for n, s in numbered if ".detach()" in s and not s.startswith("#")]
        found = off[:1] or (ends if len(ends) == 1 else [])
        for number, text in found:
            return Place(None, inner.co_filename, number, text, inner.co_name)
    return None


def _names(line: str, words: tuple[str, ...]) -> bool:
    return any(word in line for word in words)
