"""Lists, tuples and dicts that hold tensors: what is inside, and whether its graph is needed."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.reaching_definitions import BindingIndex, key_of
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import elements, is_a, items
from autograd_explain.program import last_name

_PLAIN = (list, tuple, deque)
_FILLS = frozenset(
    "append appendleft extend insert add update clear setdefault keys index count".split()
)
_SHOWS = frozenset("len print float round format str isinstance max min".split())
_HANDED_ON = frozenset("list tuple sorted reversed enumerate zip iter".split())


def items_of(value: Any) -> list[Any] | None:
    """What a plain container holds; None for anything else."""
    if is_a(value, dict):
        return [v for _, v in items(value)]
    if type(value).__name__ in ("dict_values", "odict_values"):
        return list(value)
    return elements(value) if is_a(value, _PLAIN) else None


def held(value: Any, tensor: torch.Tensor, depth: int = 0) -> bool:
    """Whether a container (or one inside it) holds this very tensor."""
    items = items_of(value)
    if items is None or depth > 4:
        return False
    return any(v is tensor or held(v, tensor, depth + 1) for v in items)


def numbers_only(value: Any) -> bool:
    """Whether everything in a container is a tensor of a single number."""
    items = items_of(value)
    return bool(items) and all(is_a(t, torch.Tensor) and t.dim() == 0 for t in items or ())


def needs_graph(scene: Scene, container: ExprAt) -> bool:
    """Whether the program also computes with what is in the container, so that it must hold
    tensors: `torch.stack(self.losses)`, `sum(losses)`, `for l in losses: l.backward()`.

    What only fills, measures, prints or hands it to another library does as well with numbers.
    """
    slicer = scene.slicer
    return any(
        _computes(scene, slicer.index(source), slicer.at(source, node))
        for source, node in scene.index.nodes(ast.expr)
        if _same(node, container)
    )


def _same(node: ast.expr, container: ExprAt) -> bool:
    """`self.losses` and `agent.losses` are one attribute; other keys are told by their text."""
    if isinstance(container.node, ast.Attribute):
        return isinstance(node, ast.Attribute) and node.attr == container.node.attr
    return key_of(node) is not None and key_of(node) == container.key


def _computes(scene: Scene, index: BindingIndex, read: ExprAt) -> bool:
    """Whether an expression takes tensors out of a container to compute with them; also where
    that is not known."""
    if not isinstance(getattr(read.node, "ctx", None), ast.Load):
        return False
    for around, part in _around(index, read.node):
        if isinstance(around, ast.Subscript) and not isinstance(around.ctx, ast.Load):
            return False
        if _hands_on(around, part):
            continue
        if isinstance(around, ast.Attribute):
            return around.attr not in _FILLS
        if isinstance(around, ast.Call):
            return _computes_with_arguments(scene, ExprAt(read.scope, around.func))
        if isinstance(around, (ast.For, ast.comprehension)):
            return part is around.iter and _uses_elements(index, around)
        return not isinstance(around, (ast.Compare, ast.Expr, ast.Delete, ast.FormattedValue))
    return False


def _hands_on(around: ast.AST, part: ast.AST) -> bool:
    """Whether an expression is the container again or a part: `xs[1:]`, `list(d.values())`."""
    if isinstance(around, ast.Attribute):
        return around.attr in ("values", "items", "copy")
    if isinstance(around, ast.Call):
        name = around.func.id if isinstance(around.func, ast.Name) else ""
        return part is around.func or name in _HANDED_ON
    return isinstance(around, (ast.Subscript, ast.Starred, ast.keyword))


def _around(index: BindingIndex, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The nodes around an expression, each with its part that holds the expression."""
    part = node
    for parent in index.ancestors(node):
        yield parent, part
        part = parent


def _computes_with_arguments(scene: Scene, function: ExprAt) -> bool:
    """Whether a function computes with the tensors it is given: torch's do, a helper may."""
    slicer = scene.slicer
    assert isinstance(function.node, ast.expr)
    name = last_name(function.node)
    if name in _FILLS or name in _SHOWS:
        return False
    callee = slicer.callee(function.inside(ast.Call(function.node, [], [])))
    if callee is not None:
        return slicer.frame_scope(callee.body) is None
    value = slicer.value(function)
    module = str(getattr(value, "__module__", None) or type(value).__module__)
    return module.startswith(("torch", "builtins", "functools"))


def _uses_elements(index: BindingIndex, loop: ast.For | ast.comprehension) -> bool:
    """Whether a loop over the container does more with an element than to show it."""
    targets = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    around = index.parents.get(loop) if isinstance(loop, ast.comprehension) else loop
    for node in ast.walk(around) if around is not None else ():
        if not (isinstance(node, ast.Name) and node.id in targets):
            continue
        parent = index.parents.get(node)
        if isinstance(node.ctx, ast.Load) and isinstance(parent, (ast.Attribute, ast.BinOp)):
            return True
        if isinstance(parent, ast.AugAssign) and parent.value is node:
            return True
    return False
