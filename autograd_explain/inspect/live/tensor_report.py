"""Facts about living tensors and graphs, for a user who asks between two cells.

The program goes on afterwards, so nothing is read that could change it: asking a view that was
written in place for its `grad_fn` or `is_leaf` would rebuild its history (torch 2.13).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .graph import Graph, GraphNode
from .names import Names, shares_memory
from .shapes import shown_shape

#: A graph is shown up to this many lines.
MOST_NODES = 60


@dataclass(frozen=True)
class TensorReport:
    """A tensor as it is now.  `is_leaf` and `grad_fn` are None where asking would change it."""

    name: str
    dtype: str
    shape: str
    device: str
    requires_grad: bool
    version: int | None
    is_leaf: bool | None
    grad_fn: str | None
    grad: str | None
    view_of: tuple[str, ...] | None
    shares_with: tuple[str, ...]


@dataclass(frozen=True)
class NodeReport:
    """A line of a graph: `depth` from the root, the leaves' and results' names, what is wrong."""

    depth: int
    node: str
    names: tuple[str, ...]
    again: bool
    freed: bool
    overwritten: tuple[tuple[str, int, int], ...]  #: slot, saved version, version now


def tensor_at(expression: str, namespace: Mapping[str, Any]) -> torch.Tensor:
    """The tensor that an expression without calls names; ValueError says why there is none."""
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        raise ValueError(f"{expression!r} is no expression") from None
    if any(isinstance(node, (ast.Call, ast.Await, ast.NamedExpr)) for node in ast.walk(tree)):
        raise ValueError(f"{expression!r} would run code; give the result a name first")
    try:
        value = eval(compile(tree, "<autograd_explain>", "eval"), {}, dict(namespace))
    except Exception as error:
        raise ValueError(f"{expression}: {type(error).__name__}: {error}") from None
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"{expression} is no tensor: its type is {type(value).__name__}")
    return value


def look(name: str, tensor: torch.Tensor, names: Names) -> TensorReport:
    """What is known about a tensor."""
    may_ask = _may_ask(tensor)
    base = tensor._base
    gradient = tensor.grad if may_ask and (tensor.is_leaf or tensor.retains_grad) else None
    return TensorReport(
        name=name,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=shown_shape(tensor),
        device=str(tensor.device),
        requires_grad=tensor.requires_grad,
        version=None if tensor.is_inference() else tensor._version,
        is_leaf=tensor.is_leaf if may_ask else None,
        grad_fn=_node_name(tensor.grad_fn) if may_ask else None,
        grad=None if gradient is None else shown_shape(gradient),
        view_of=None if base is None else names.of(base),
        shares_with=_sharing(tensor, name, names),
    )


def _may_ask(tensor: torch.Tensor) -> bool:
    base = tensor._base
    if base is None or tensor.is_inference() or not base.requires_grad:
        return True
    return tensor._version == 0


def _sharing(tensor: torch.Tensor, name: str, names: Names) -> tuple[str, ...]:
    others = (n for n in names.tensors if n.name != name and n.tensor is not tensor)
    return tuple(dict.fromkeys(n.name for n in others if shares_memory(n.tensor, tensor)))


def _node_name(node: Any) -> str:
    return "" if node is None else str(node.name()).rpartition("::")[2]


def graph_lines(root: torch.Tensor, names: Names) -> tuple[list[NodeReport], bool]:
    """The graph behind a tensor as indented lines, and whether that is all of it."""
    graph = Graph([root], limit=MOST_NODES * 4, seconds=1.0)
    wrong: dict[int, list[tuple[str, int, int]]] = {}
    for saved in graph.overwritten():
        entry = (saved.name, saved.saved_version or 0, saved.current_version)
        wrong.setdefault(id(saved.node.node), []).append(entry)
    freed = {id(node.node) for node in graph.freed()}
    results = _results(names)
    lines: list[NodeReport] = []
    for node, depth, again in _depth_first(graph):
        if len(lines) == MOST_NODES:
            return lines, False
        known = names.of(node.variable) if node.variable is not None else ()
        lines.append(
            NodeReport(
                depth=depth,
                node=node.name.rpartition("::")[2],
                names=known[:1] or results.get(id(node.node), ()),
                again=again,
                freed=id(node.node) in freed,
                overwritten=tuple(wrong.get(id(node.node), ())),
            )
        )
    return lines, graph.complete


def _results(names: Names) -> dict[int, tuple[str, ...]]:
    """The first name of what a node computed."""
    found: dict[int, tuple[str, ...]] = {}
    for named in names.tensors:
        if named.tensor.requires_grad and _may_ask(named.tensor):
            found.setdefault(id(named.tensor.grad_fn), (named.name,))
    return found


def _depth_first(graph: Graph) -> Iterator[tuple[GraphNode, int, bool]]:
    """From the root to the leaves; what was shown before is not gone into again."""
    seen: set[int] = set()
    todo = [(start, 0) for start in graph.starts]
    while todo:
        fn, depth = todo.pop()
        node = graph.find(fn)
        if node is None:
            continue
        again = id(fn) in seen
        seen.add(id(fn))
        yield node, depth, again
        if not again:
            todo.extend((child, depth + 1) for child in reversed(node.children))
