"""Where the user defined a custom Function, a hook or another function that a message names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import MethodType

import torch

from ...model import Place
from ...program import Program, Source, first_line
from ...program_index import index_of
from ..scene import Scene


def returned_by(program: Program, name: str) -> Place | None:
    """Where the user's one function of this name returns its value."""
    found = index_of(program).function(name)
    returned = () if found is None else found.returned
    return found.at(returned[0]) if found is not None and len(returned) == 1 else None


def function_of_node(scene: Scene, name: str) -> type | None:
    """The user's `torch.autograd.Function` whose node a message calls `name` ("ScaleBackward")."""
    for node in scene.graph.nodes:
        cls = getattr(type(node.node), "_forward_cls", None)
        if cls is not None and node.name == name:
            return cls if isinstance(cls, type) else None
    return next(_classes(scene, name.removesuffix("Backward")), None)


def functions(scene: Scene) -> tuple[type, ...]:
    """The custom Functions of the failed graph, newest first, each once."""
    found = [getattr(type(n.node), "_forward_cls", None) for n in scene.graph.nodes]
    return tuple(dict.fromkeys(c for c in found if isinstance(c, type)))


def function_names(scene: Scene, cls: type) -> tuple[str, ...]:
    """What the program calls a Function: its class, and `quantize = Quantize.apply`."""
    bound = ((n, v) for n, v in scene.incident.namespace.items() if type(v) is MethodType)
    applied = [n for n, v in bound if v.__self__ is cls and n[:1] != "_"]
    return (cls.__name__, *applied)


def function_at(source: Source, line: int) -> ast.FunctionDef | None:
    """The function whose code begins at a line, that of its first decorator."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and first_line(node) == line:
            return node
    return None


def _classes(scene: Scene, name: str) -> Iterator[type]:
    scopes = [scene.incident.namespace, *(f.frame.f_locals for f in scene.incident.user_frames)]
    for scope in scopes:
        found = scope.get(name)
        if isinstance(found, type) and issubclass(found, torch.autograd.Function):
            yield found
