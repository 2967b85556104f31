"""A statement that wrote a tensor after several views of it had been made at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from .names import shares_memory
from .origin import inside, surfaced, walker_of
from .scene import Scene
from .source_walk import Spot
from .source_walk.syntax import statements_of
from .statements import Write, base_of, write_of


@dataclass(frozen=True, eq=False)
class BaseWrite:
    """`view` is the expression whose use raised, `maker` made the views, `write` came after."""

    view: Spot
    tensor: torch.Tensor
    maker: Spot
    write: Write
    scope: Spot
    names: tuple[str, ...]


def find(scene: Scene) -> BaseWrite | None:
    """The write between the views' making and the failing line, where the source shows it."""
    walker = walker_of(scene)
    for view, tensor in _views(scene):
        makers = [m for m in walker.makers(view) if isinstance(m.node, ast.Call)]
        if not makers:
            continue
        names = _memory_names(scene, tensor)
        for spot, write in _writes(scene, view, makers[0], names):
            return BaseWrite(view, tensor, makers[0], write, spot, names)
    return None


def _views(scene: Scene) -> Iterator[tuple[Spot, torch.Tensor]]:
    """The views that the failing statement reads."""
    at = surfaced(scene)
    statement = None if at is None else walker_of(scene).statement(at)
    for node in ast.walk(statement) if statement is not None else ():
        if at is not None and isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            value = walker_of(scene).value(inside(at, node))
            if isinstance(value, torch.Tensor) and value._is_view():
                yield inside(at, node), value


def _memory_names(scene: Scene, tensor: torch.Tensor) -> tuple[str, ...]:
    return tuple(n.name for n in scene.names.tensors if shares_memory(n.tensor, tensor))


def _writes(
    scene: Scene, view: Spot, maker: Spot, names: tuple[str, ...]
) -> Iterator[tuple[Spot, Write]]:
    """Writes to the same memory after the views were made, newest first."""
    walker = walker_of(scene)
    made = walker.statement(maker)
    for body_spot in (view, maker):
        found = []
        for statement in statements_of(body_spot.scope.body):
            write = write_of(statement)
            after = made is None or maker.scope.body is not body_spot.scope.body
            after = after or (made is not None and statement.lineno > made.lineno)
            if write is not None and after and ast.unparse(base_of(write.target)) in names:
                found.append((Spot(body_spot.scope, write.target), write))
        yield from reversed(found)
