"""Where the user defined a custom Function, a hook or another function that a message names."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ...model import Place
from ...program import Program, Source, called_name, own_nodes
from ..scene import Scene


@dataclass(frozen=True, eq=False)
class Definition:
    """A function's source: `node` is its `def` or `lambda`."""

    source: Source
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

    @property
    def name(self) -> str | None:
        return getattr(self.node, "name", None)

    @property
    def place(self) -> Place:
        return self.source.place(self.node.lineno, None, None)

    @property
    def returned(self) -> tuple[ast.expr, ...]:
        """The expressions that it returns, in the order of the text."""
        if isinstance(self.node, ast.Lambda):
            return (self.node.body,)
        found = [n for n in own_nodes(self.node) if isinstance(n, ast.Return)]
        return tuple(n.value for n in found if n.value is not None)

    def at(self, node: ast.AST) -> Place:
        """The place of an expression or statement inside."""
        return self.source.place(getattr(node, "lineno", 1), self.name, node)


def definition(program: Program, function: Any) -> Definition | None:
    """The source of a live function of the user's; None for anything else."""
    function = getattr(function, "__func__", function)
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType):
        return None
    source = program.source_of(code)
    if source is None:
        return None
    found = [n for n in ast.walk(source.tree) if _is_of(n, code)]
    return Definition(source, found[0]) if len(found) == 1 else None  # type: ignore[arg-type]


def _is_of(node: ast.AST, code: types.CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        return node.name == code.co_name and code.co_firstlineno in (first, node.lineno)
    return False


def method(program: Program, cls: type | None, name: str) -> Definition | None:
    """The source of a class's method as the user wrote it."""
    for owner in cls.__mro__ if cls is not None else ():
        if name in vars(owner):
            return definition(program, vars(owner)[name])
    return None


def called_so(program: Program, name: str) -> Definition | None:
    """The user's one function of this name."""
    found = [
        Definition(source, node)
        for source in program.cells
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    return found[0] if len(found) == 1 else None


def returned_by(program: Program, name: str) -> Place | None:
    """Where the user's one function of this name returns its value."""
    found = called_so(program, name)
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


def _classes(scene: Scene, name: str) -> Iterator[type]:
    scopes = [scene.incident.namespace, *(f.frame.f_locals for f in scene.incident.user_frames)]
    for scope in scopes:
        found = scope.get(name)
        if isinstance(found, type) and issubclass(found, torch.autograd.Function):
            yield found


def calls(program: Program, *names: str) -> Iterator[tuple[Source, ast.Call]]:
    """The calls of functions with these (last) names in the cells that ran, newest cell first."""
    for source in reversed(program.cells):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and called_name(node) in names:
                yield source, node
