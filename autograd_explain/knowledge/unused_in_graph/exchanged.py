"""A package that gives a module other parameters for the length of its forward pass, because the
program handed it the module: what the result was computed from are not the module's."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import torch

from autograd_explain.arguments import values_given
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a, table_of
from autograd_explain.program import is_installed


@dataclass(frozen=True, eq=False)
class Exchange:
    """The call of the package's function, and the expression that it is given the module by."""

    call: ExprAt
    module: ExprAt


_HOOKS = ("_forward_pre_hooks", "_forward_hooks")


def exchanged_by(scene: Scene, tensor: torch.Tensor) -> Exchange | None:
    """The one call that handed a module with this parameter to the package whose functions stand
    around the module's forward; None where the graph leads to no parameter of this shape that no
    module has, or the program itself sets the parameter."""
    held = {id(m): m for _, m in scene.names.held_modules}
    places = ((m, n) for m in held.values() for n, p in m._parameters.items() if p is tensor)
    place = next(places, None)
    if place is None or scene.slicer.stores(*place) or not _is_of_others(scene, held, tensor):
        return None
    owner = place[0]
    around = [m for m in held.values() if any(inner is owner for inner in m.modules())]
    packages = {_package(f) for m in (owner, *around) for f in _put_around(m)} - {""}
    given = _given(scene, around) if packages else ()
    found = [e for e in given if _package(_called(scene, e.call)) in packages]
    return found[0] if len(found) == 1 else None


def _is_of_others(scene: Scene, held: dict[int, torch.nn.Module], tensor: torch.Tensor) -> bool:
    """Whether the graph ends in parameters of the shape that no module has."""
    own = {id(p) for m in held.values() for p in m.parameters()}
    leaves = (n.variable for n in scene.graph.nodes if n.variable is not None)
    others = (v for v in leaves if is_a(v, torch.nn.Parameter) and id(v) not in own)
    return any(v.shape == tensor.shape for v in others)


def _put_around(module: torch.nn.Module) -> Iterator[Any]:
    """The functions that were put around its forward: hooks, and one in the place of the method."""
    table = table_of(module)
    yield from (hook for name in _HOOKS for hook in table.get(name, {}).values())
    yield table.get("forward")


def _package(function: Any) -> str:
    """The installed package of a function's code, "" where it is none or torch's own."""
    while isinstance(function, (functools.partial, MethodType)):
        function = function.func if is_a(function, functools.partial) else function.__func__
    if not isinstance(function, FunctionType):
        return ""
    name = str(function.__globals__.get("__name__", "")).partition(".")[0]
    return name if name != "torch" and is_installed(function.__code__.co_filename) else ""


def _called(scene: Scene, call: ExprAt) -> Any:
    return None if call.callable is None else scene.slicer.value(call.callable)


def _given(scene: Scene, modules: list[torch.nn.Module]) -> Iterator[Exchange]:
    """The calls of the program that are given one of the modules."""
    known = {id(m) for m in modules}
    for source, call in scene.index.nodes(ast.Call):
        spot = scene.slicer.at(source, call)
        given = (spot.inside(a) for a in values_given(call))
        module = next((g for g in given if id(scene.slicer.value(g)) in known), None)
        if module is not None:
            yield Exchange(spot, module)
