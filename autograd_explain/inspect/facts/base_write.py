"""A statement that wrote a tensor after several views of it had been made at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.syntax import statements_of
from autograd_explain.inspect.facts.statements import SourceWrite, base_of, write_of
from autograd_explain.inspect.live.names import shares_memory
from autograd_explain.inspect.scene import Scene
from autograd_explain.program import called_name

#: Operations that return several views at once; iterating over a tensor is the other one.
MAKES_PARTS = frozenset(
    "unbind chunk split split_with_sizes tensor_split hsplit vsplit dsplit".split()
)


@dataclass(frozen=True, eq=False)
class BaseWrite:
    """`view` is the expression whose use raised, `maker` made the views, `write` came after.

    `scope` is the write where it stands, `reached` what made the views as that function spells it:
    `maker` itself, or the call that led to it.
    """

    view: ExprAt
    tensor: torch.Tensor
    maker: ExprAt
    write: SourceWrite
    scope: ExprAt
    names: tuple[str, ...]
    reached: ExprAt | None


def find(scene: Scene) -> BaseWrite | None:
    """The write between the views' making and the failing line, where the source shows it."""
    for view, tensor in _views(scene):
        names = _memory_names(scene, tensor)
        for maker in _makers(scene, view)[:1]:
            for spot, write in _writes(scene, view, maker, names):
                reached = _seen_from(spot, maker)
                return BaseWrite(view, tensor, maker, write, spot, names, reached)
    return None


def _makers(scene: Scene, view: ExprAt) -> list[ExprAt]:
    """The calls that made a view: those that it came from, or those in what made its container
    (`dict(zip(names, x.unbind(1)))`)."""
    slicer, node = scene.slicer, view.node
    makers = [m for m in slicer.makers(view) if isinstance(m.node, ast.Call)]
    while not makers and isinstance(node, ast.Subscript):
        node = node.value
        held = slicer.makers(view.inside(node))
        makers = [m.inside(c) for m in held for c in _parts_made(m.node)]
    return makers


def _parts_made(node: ast.AST) -> list[ast.Call]:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    found = [c for c in calls if called_name(c) in MAKES_PARTS]
    return found if len(found) == 1 else []


def _seen_from(at: ExprAt, maker: ExprAt) -> ExprAt | None:
    """The expression in one function through which another made something: itself, or a call."""
    spot: ExprAt | None = maker
    while spot is not None and spot.scope.body is not at.scope.body:
        spot = spot.scope.call
    return spot


def _outwards(spot: ExprAt) -> Iterator[ExprAt]:
    """An expression, the call that led to its function, the call that led to that one's."""
    found: ExprAt | None = spot
    while found is not None:
        yield found
        found = found.scope.call


def _views(scene: Scene) -> Iterator[tuple[ExprAt, torch.Tensor]]:
    """The views that the failing statement reads."""
    at = scene.surfaced
    statement = None if at is None else scene.slicer.statement(at)
    for node in ast.walk(statement) if statement is not None else ():
        if at is not None and isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            value = scene.slicer.value(at.inside(node))
            if isinstance(value, torch.Tensor) and value._is_view() and _is_refused(value):
                yield at.inside(node), value


def _is_refused(view: torch.Tensor) -> bool:
    """Whether torch noted that it cannot bring a view up to date; the others go on being used."""
    autograd: Any = torch._C._autograd
    return bool(autograd._get_creation_meta(view) != autograd.CreationMeta.DEFAULT)


def _memory_names(scene: Scene, tensor: torch.Tensor) -> tuple[str, ...]:
    return tuple(n.name for n in scene.names.tensors if shares_memory(n.tensor, tensor))


def _writes(
    scene: Scene, view: ExprAt, maker: ExprAt, names: tuple[str, ...]
) -> Iterator[tuple[ExprAt, SourceWrite]]:
    """Writes to the same memory after the views were made, newest first."""
    slicer, seen = scene.slicer, set()
    for inner in (*_outwards(view), *_outwards(maker)):
        if id(inner.scope.body) in seen:
            continue
        seen.add(id(inner.scope.body))
        reached = _seen_from(inner, maker)
        made = None if reached is None else slicer.statement(reached)
        found = []
        for statement in statements_of(inner.scope.body):
            write = write_of(statement)
            after = made is None or statement.lineno > made.lineno
            if write is not None and after and ast.unparse(base_of(write.target)) in names:
                found.append((ExprAt(inner.scope, write.target), write))
        yield from reversed(found)
