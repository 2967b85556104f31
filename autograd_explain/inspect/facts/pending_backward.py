"""A backward that is still to come and needs the value that a leaf has: behind it a write to the
leaf is due, not before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ...incident import LiveFrame
from ...model import Place
from ...program import Source, blocks, called_name, own_nodes
from ..dataflow.safe_lookup import in_frame
from ..live.graph import Graph
from ..live.names import storage_key
from ..scene import Scene

_SECONDS = 0.3


@dataclass(frozen=True)
class PendingBackward:
    """`backward` calls it; `write` is the statement beside it that leads to the refused write, and
    `last` what that has to wait for: the backward, or the step of an optimizer that uses it."""

    write: Place
    backward: Place
    last: Place


def pending_backward(scene: Scene, leaf: torch.Tensor | None) -> PendingBackward | None:
    """The next backward below one of the failing lines whose live graph has saved the leaf, or
    where a loop writes leaves, another one of that graph."""
    if leaf is None:
        return None
    loops = any(isinstance(n, ast.For) for n in _around_write(scene))
    for live in reversed(scene.incident.user_frames):
        source = scene.program.source_of(live.code)
        at = scene.incident.place_of(live)
        if source is None or at is None:
            continue
        function = source.function_at(at)
        for call in _below(source, function or source.tree, live.line):
            if any(_has_saved(value, leaf, loops) for value in _handed(call, live)):
                return _pending(source, live, call)
    return None


def _below(source: Source, scope: ast.AST, line: int) -> list[ast.Call]:
    calls = (n for n in own_nodes(scope) if isinstance(n, ast.Call))
    return [c for c in calls if c.lineno > line and called_name(c) == "backward"]


def _handed(call: ast.Call, live: LiveFrame) -> Iterator[torch.Tensor]:
    """The tensors that a call of backward names."""
    for node in (n for part in (call.func, *call.args) for n in ast.walk(part)):
        value = in_frame(node, live.frame) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if isinstance(value, torch.Tensor) and value.grad_fn is not None:
            yield value


def _around_write(scene: Scene) -> list[ast.AST]:
    source = None if scene.place is None else scene.program.source_at(scene.place)
    write = scene.program.statement_at(scene.place)
    return [] if source is None or write is None else list(source.around(write))


def _has_saved(value: torch.Tensor, leaf: torch.Tensor, others: bool) -> bool:
    graph = Graph([value], seconds=_SECONDS)
    leaves = {storage_key(v) for n in graph.nodes if (v := n.variable) is not None}
    meant = leaves if others and storage_key(leaf) in leaves else {storage_key(leaf)}
    return any(storage_key(s.tensor) in meant for s in graph.saved())


def _pending(source: Source, live: LiveFrame, call: ast.Call) -> PendingBackward | None:
    write = source.statement_at(live.line)
    backward = next((n for n in source.around(call) if isinstance(n, ast.stmt)), None)
    if write is None or backward is None:
        return None
    block = _siblings(source, backward)
    apart = next((n for n in (write, *source.around(write)) if n in block), None)
    if not isinstance(apart, ast.stmt):
        return None
    behind = block[block.index(backward) + 1 :]
    steps = (s for s in behind if any(called_name(n) == "step" for n in ast.walk(s)))
    name = live.code.co_name if source.function_around(backward) else None
    places = (source.place(s.lineno, name, s) for s in (apart, backward, next(steps, backward)))
    return PendingBackward(*places)


def _siblings(source: Source, statement: ast.stmt) -> list[ast.stmt]:
    """The statements of the block that a statement stands in."""
    return next((b for b in blocks(source.parents.get(statement)) if statement in b), [])
