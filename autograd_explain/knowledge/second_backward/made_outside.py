"""What a loop reads in every round and was computed before it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import torch

from autograd_explain.incident import LiveFrame
from autograd_explain.inspect.dataflow.safe_lookup import MISSING, in_frame
from autograd_explain.inspect.facts.failing_loops import loops_around
from autograd_explain.inspect.live.graph import GraphNode
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Place
from autograd_explain.program import Source, expression_of

_OWN_NAME = re.compile(r"\w+")
_HOLDERS = (torch.Tensor, dict, list, tuple)


def made_outside(scene: Scene) -> list[GraphNode]:
    """The nodes of the failing graph behind tensors that live under names, or in containers of
    names, which the loop around the failure reads and leaves as they are; newest first."""
    fixed = set(_fixed_names(scene))
    starts = []
    for named in scene.names.tensors if fixed else ():
        root = _OWN_NAME.match(named.name)
        inside = named.name[0 if root is None else root.end() :]
        if root is not None and root[0] in fixed and "." not in inside:
            grad_fn = None if named.tensor.is_leaf else named.tensor.grad_fn
            node = None if grad_fn is None else scene.graph.find(grad_fn)
            starts += [] if node is None else [node]
    below = {id(n.node) for n in scene.graph.below(starts)}
    return [n for n in scene.graph.inner if id(n.node) in below]


def read_in_loop(scene: Scene, name: str) -> Place | None:
    """The first statement of a loop around the failure that reads `smooth` of `smooth['beta']`."""
    root = _OWN_NAME.match(name)
    for live, source, loop in _loops(scene) if root is not None else ():
        for statement in loop.body:
            names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
            if root is not None and root[0] in names:
                return source.place(statement.lineno, live.code.co_name, statement)
    return None


def _fixed_names(scene: Scene) -> Iterator[str]:
    """The names of tensors and containers that the loops around the failing lines only read."""
    for live, _, loop in _loops(scene):
        nodes = [n for s in loop.body for n in ast.walk(s)]
        target = () if isinstance(loop, ast.While) else ast.walk(loop.target)
        given = {name for node in (*target, *nodes) for name in _changed(node)}
        for name in {n.id for n in nodes if isinstance(n, ast.Name)} - given:
            value = in_frame(expression_of(name), live.frame)
            if value is not MISSING and is_a(value, _HOLDERS):
                yield name


def _loops(scene: Scene) -> Iterator[tuple[LiveFrame, Source, ast.For | ast.While]]:
    for live in scene.incident.user_frames:
        source = scene.program.source_of(live.code)
        if source is not None:
            yield from ((live, source, loop) for loop in loops_around(source, live.line))


def _changed(node: ast.AST) -> Iterator[str]:
    """The names that a node binds, or whose value it changes: `x = …`, `x[0] = …`, `x.append(…)`,
    `x += …`."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    inner: ast.AST | None = None
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        inner = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        inner = node.func.value
    while isinstance(inner, (ast.Subscript, ast.Attribute)):
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield inner.id
