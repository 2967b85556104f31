"""The graph behind a living tensor, for a user who asks between two cells.

Leaves, and what only makes another view of one (a transposed weight), are names at the operation
that reads them.  Operations that follow one another without a branch are one row, as long as no
other line of the program, no leaf, no overwritten value and no repetition begins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from ...model import LineId, Place
from .condense import GraphRow, Operation, Overwritten, condense
from .graph import Graph, GraphNode, SavedTensor
from .names import Names, storage_key
from .shapes import shown_shape
from .tensor_report import may_ask

NEAR = 4  #: nodes between a tensor and the end of its neighbourhood
_MOST_NODES = 50_000
_SECONDS = 1.0
_NUMBER = re.compile(r"\d+")
_NUMBERED = re.compile(r"Backward\d*$")
#: What shows the same values in another shape.
_VIEWS = frozenset(
    ("T", "Transpose", "Permute", "View", "UnsafeView", "Expand", "Unsqueeze", "Squeeze", "Alias")
)

#: The line that made a node, and the lines that wrote to what it saved; None and () if unknown.
Maker: TypeAlias = Callable[[GraphNode], "Place | None"]
Writers: TypeAlias = Callable[[SavedTensor], tuple[Place, ...]]


@dataclass(frozen=True)
class GraphReport:
    """A graph as it is now, in the order of time.

    `nodes` and `leaves` count all of it, `freed` its nodes whose saved values are gone (their rows
    say so where others have theirs); `complete` is False where there is more than was looked at.
    `around` is the tensor whose neighbourhood of `near` nodes is all that is shown, "" without one.
    """

    name: str
    rows: tuple[GraphRow, ...]
    nodes: int
    leaves: int
    freed: int
    overwritten: int
    complete: bool
    around: str = ""
    near: int = 0


class NotInGraph(ValueError):
    """The tensor asked about is no part of the graph."""


def graph_of(root: torch.Tensor) -> Graph:
    """The graph behind a tensor, as far as a question between two cells may look."""
    return Graph([root], limit=_MOST_NODES, seconds=_SECONDS)


def graph_report(
    name: str,
    graph: Graph,
    names: Names,
    maker: Maker,
    writers: Writers,
    around: tuple[str, torch.Tensor, int] | None = None,
) -> GraphReport:
    """The whole graph, or what lies around a tensor of it; raises NotInGraph."""
    called, tensor, near = around or ("", None, 0)
    asked = None if tensor is None else _node_of(tensor, graph)
    if tensor is not None and asked is None:
        raise NotInGraph(called)
    wrong = _overwritten(graph, writers)
    shown = None if asked is None else {id(n.node) for n in _near(asked, graph, near)}
    rows = _Rows(graph, names, maker, wrong, shown, asked)
    return GraphReport(
        name=name,
        rows=condense(rows.finished()),
        nodes=sum(not _is_leaf(node) for node in graph.nodes),
        leaves=sum(map(_is_leaf, graph.nodes)),
        freed=sum(bool(node.freed_slots) for node in graph.nodes),
        overwritten=sum(map(len, wrong.values())),
        complete=graph.complete,
        around=called,
        near=near,
    )


def _is_leaf(node: GraphNode) -> bool:
    return node.name.endswith("AccumulateGrad")


def _node_of(tensor: torch.Tensor, graph: Graph) -> GraphNode | None:
    """The node that made a tensor, or that stands for the leaf it is."""
    if not tensor.requires_grad or not may_ask(tensor):
        return None
    if tensor.grad_fn is not None:
        return graph.find(tensor.grad_fn)
    return next((n for n in graph.nodes if _is_leaf(n) and n.variable is tensor), None)


def _near(node: GraphNode, graph: Graph, near: int) -> Iterable[GraphNode]:
    """The nodes that lie at most so far from one, in either direction."""
    found = {id(node.node): node}
    border = [node]
    for _ in range(near):
        beside = [n for b in border for n in (*graph.parents(b), *_below(b, graph))]
        border = [n for n in {id(n.node): n for n in beside}.values() if id(n.node) not in found]
        found |= {id(n.node): n for n in border}
    return found.values()


def _below(node: GraphNode, graph: Graph) -> Iterator[GraphNode]:
    yield from (n for fn in node.children if (n := graph.find(fn)) is not None)


def _overwritten(graph: Graph, writers: Writers) -> Mapping[int, list[Overwritten]]:
    found: dict[int, list[Overwritten]] = {}
    for saved in graph.overwritten():
        wrong = Overwritten(
            saved.name, saved.saved_version or 0, saved.current_version, writers(saved)
        )
        found.setdefault(id(saved.node.node), []).append(wrong)
    return found


@dataclass
class _Row:
    """A row while the graph is walked."""

    place: Place | None
    nodes: list[GraphNode]
    leaves: dict[str, None]
    inputs: dict[int, _Row]
    is_view_of_leaf: bool = False
    position: int = field(default=-1)


class _Rows:
    """The rows of a graph, or of the part of it that is shown."""

    def __init__(
        self,
        graph: Graph,
        names: Names,
        maker: Maker,
        wrong: Mapping[int, list[Overwritten]],
        shown: set[int] | None,
        asked: GraphNode | None,
    ) -> None:
        freed = {id(n.node) for n in graph.nodes if n.freed_slots}
        self._freed = freed if freed and next(graph.saved(), None) is not None else set()
        self._graph, self._maker, self._wrong, self._shown = graph, maker, wrong, shown
        self._asked = None if asked is None else id(asked.node)
        self._leaf_names, self._results = _LeafNames(names), _results(names)
        self._of: dict[int, _Row] = {}  # by the node whose result a row's last operation made
        for node in reversed(graph.nodes):
            if shown is None or id(node.node) in shown:
                self._add(node)

    def finished(self) -> list[GraphRow]:
        rows = [r for r in {id(r): r for r in self._of.values()}.values() if r.nodes]
        rows = [r for r in rows if not r.is_view_of_leaf]
        for number, row in enumerate(rows):
            row.position = number
        return [self._written(row) for row in rows]

    def _add(self, node: GraphNode) -> None:
        if _is_leaf(node):
            if id(node.node) == self._asked:  # with no one who reads it, or asked for itself
                self._leaf_row(node)
            return
        place = self._maker(node)
        row = _Row(place, [node], {}, {})
        for below in _below(node, self._graph):
            self._take(row, below)
        self._of[id(node.node)] = row
        before = next(iter(row.inputs.values())) if len(row.inputs) == 1 else None
        if before is not None and self._goes_on(before, row):
            before.nodes.append(node)
            self._of[id(node.node)] = before
        elif not row.inputs and row.leaves and len(self._graph.parents(node)) == 1:
            row.is_view_of_leaf = _name(node) in _VIEWS and not self._is_marked(node)

    def _leaf_row(self, node: GraphNode) -> None:
        name = self._leaf_names.of(node)
        self._of[id(node.node)] = _Row(None, [node], {name: None}, {})

    def _take(self, row: _Row, below: GraphNode) -> None:
        """What a row reads: a leaf by its name, another row."""
        made = self._of.get(id(below.node))
        if made is not None and made.is_view_of_leaf:
            row.leaves.update(made.leaves)
        elif made is not None:
            row.inputs[id(made)] = made
        if _is_leaf(below) and made is None:
            row.leaves[self._leaf_names.of(below)] = None

    def _goes_on(self, before: _Row, row: _Row) -> bool:
        """Whether a row is but the next step of another."""
        last, node = before.nodes[-1], row.nodes[0]
        return (
            not row.leaves
            and _line(before.place) == _line(row.place)
            and _name(node) not in map(_name, before.nodes)
            and len(self._graph.parents(last)) == 1
            and self._of.get(id(last.node)) is before
            and not (self._is_marked(last) or self._is_marked(node) or _is_leaf(last))
            and (id(last.node) in self._freed) == (id(node.node) in self._freed)
        )

    def _is_marked(self, node: GraphNode) -> bool:
        return id(node.node) in self._wrong or id(node.node) == self._asked

    def _written(self, row: _Row) -> GraphRow:
        keys = [id(node.node) for node in row.nodes]
        operations = tuple(
            Operation(_name(n), self._results.get(k, ()))
            for n, k in zip(row.nodes, keys, strict=True)
        )
        return GraphRow(
            operations,
            tuple(row.leaves),
            tuple(sorted(r.position for r in row.inputs.values())),
            row.place,
            tuple(wrong for key in keys for wrong in self._wrong.get(key, ())),
            any(key in self._freed for key in keys),
            self._asked in keys,
        )


def _line(place: Place | None) -> LineId | None:
    return None if place is None else place.line_id


def _name(node: GraphNode) -> str:
    return _NUMBERED.sub("", node.name.rpartition("::")[2])


class _LeafNames:
    """What the user calls leaves: looked up by the tensor itself, else by its elements."""

    def __init__(self, names: Names) -> None:
        self._itself: dict[int, str] = {}
        self._elements: dict[object, str] = {}
        found = [(name, n.tensor) for n in names.tensors for name in _paths(n.name, names)]
        like = Counter(_NUMBER.sub("0", name) for name, _ in found)
        # `layers[7].weight` tells more of a graph than `layer.weight`, which a loop has left.
        for name, tensor in sorted(found, key=lambda f: -like[_NUMBER.sub("0", f[0])]):
            self._itself.setdefault(id(tensor), name)
            self._elements.setdefault(_elements(tensor), name)

    def of(self, node: GraphNode) -> str:
        """A name, or the shape of a leaf that has none; never ""."""
        leaf = node.variable
        if leaf is None:
            return "?"
        found = self._itself.get(id(leaf)) or self._elements.get(_elements(leaf))
        return found or shown_shape(leaf)


def _paths(name: str, names: Names) -> Iterator[str]:
    """A tensor's name, and those by the other names of the module that holds it."""
    yield name
    owner = next((o for o in names.modules if name.startswith((f"{o}.", f"{o}["))), None)
    for other in () if owner is None else names.modules[owner]:
        yield other + name[len(owner or "") :]


def _elements(tensor: torch.Tensor) -> object:
    key = storage_key(tensor)
    return id(tensor) if key is None else (key, tensor.storage_offset(), tensor.numel())


def _results(names: Names) -> dict[int, tuple[str, ...]]:
    """What each node computed: the first name of every tensor."""
    found: dict[int, tuple[str, ...]] = {}
    seen: set[int] = set()
    for named in names.tensors:
        if named.tensor.requires_grad and id(named.tensor) not in seen and may_ask(named.tensor):
            seen.add(id(named.tensor))
            node: Any = named.tensor.grad_fn
            found[id(node)] = (*found.get(id(node), ()), named.name)
    found.pop(id(None), None)
    return found
