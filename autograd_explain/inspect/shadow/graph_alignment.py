"""Pairs the live graph's nodes with those of the stand-ins' graph, whose statements are known."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable

import torch

from ..live.graph import Graph, GraphNode
from ..live.shapes import shape_of

_DIGITS = re.compile(r"\d+$")
#: Names that differ by device or build for one and the same operation.
_SAME = {
    "CudnnBatchNormBackward": "NativeBatchNormBackward",
    "MiopenBatchNormBackward": "NativeBatchNormBackward",
    "MkldnnConvolutionBackward": "ConvolutionBackward",
    "CudnnConvolutionBackward": "ConvolutionBackward",
}
_SCALED = ("MulBackward", "DivBackward")
_DEPTH = 4
_LEAST = 2  # a node's own inputs and consumers alone say too little


def plain(name: str) -> str:
    """A node's name without the number of its overload, the same on every device."""
    name = _DIGITS.sub("", name)
    return _SAME.get(name, name)


class Pairing:
    """Live graph nodes -> the stand-in nodes that correspond to them.

    First both graphs are walked together from their roots, along equal names: where that goes
    through the answer is exact.  The rest is compared by neighbourhood (names, leaves, order of
    the inputs, to a depth), which leaves several stand-ins for the middle of a long loop.
    `leaves` are live leaves' ids with their stand-ins' ids.
    """

    def __init__(self, live: Graph, twin: Graph, leaves: dict[int, int]) -> None:
        self.exact: dict[int, GraphNode] = {}
        self._leaves = leaves
        self._live = _Side(live, lambda leaf: leaves.get(id(leaf)))
        known = set(leaves.values())
        self._twin = _Side(twin, lambda leaf: id(leaf) if id(leaf) in known else None)
        self._tables: dict[int, dict[int, tuple[GraphNode, ...]]] = {}
        self._walk_together()

    def candidates(self, node: GraphNode) -> tuple[GraphNode, ...]:
        """The stand-in nodes that may correspond to a live one; () where nothing fits."""
        found = self.exact.get(id(node.node))
        return self._alike(node) if found is None else (found,)

    def _walk_together(self) -> None:
        twins: set[int] = set()
        live, twin = self._live, self._twin
        starts = zip(live.graph.starts, twin.graph.starts, strict=False)
        todo = [self._unscaled(live.graph.find(a), twin.graph.find(b)) for a, b in starts]
        while todo:
            a, b = todo.pop()
            if a is None or b is None or id(a.node) in self.exact or id(b.node) in twins:
                continue
            if not self._equal(a, b):
                continue
            self.exact[id(a.node)] = b
            twins.add(id(b.node))
            todo.extend(zip(live.inputs(a), twin.inputs(b), strict=True))

    def _unscaled(
        self, live: GraphNode | None, twin: GraphNode | None
    ) -> tuple[GraphNode | None, GraphNode | None]:
        """Two starts, past a number that a package has multiplied the live loss with."""
        if live is None or twin is None or self._live.name(live) == self._twin.name(twin):
            return live, twin
        inputs = [n for n in self._live.inputs(live) if n is not None]
        scaled = self._live.name(live) in _SCALED and len(inputs) == 1
        return (inputs[0] if scaled else live), twin

    def _equal(self, live: GraphNode, twin: GraphNode) -> bool:
        if self._live.name(live) != self._twin.name(twin):
            return False
        a, b = live.variable, twin.variable
        if a is None or b is None:
            return len(self._live.inputs(live)) == len(self._twin.inputs(twin))
        known = self._leaves.get(id(a))
        return a.shape == b.shape and (known is None or known == id(b))

    def _alike(self, node: GraphNode) -> tuple[GraphNode, ...]:
        """The stand-ins that agree with a node to the greatest depth at which any does."""
        for depth in range(_DEPTH, _LEAST - 1, -1):
            found = self._table(depth).get(self._live.look(node, depth))
            if found is not None:
                return found
        return ()

    def _table(self, depth: int) -> dict[int, tuple[GraphNode, ...]]:
        if depth not in self._tables:
            table: dict[int, list[GraphNode]] = defaultdict(list)
            for node in self._twin.graph.nodes:
                table[self._twin.look(node, depth)].append(node)
            self._tables[depth] = {look: tuple(nodes) for look, nodes in table.items()}
        return self._tables[depth]


class _Side:
    """One of the two graphs, with what comparing it takes, each computed once."""

    def __init__(self, graph: Graph, leaf: Callable[[torch.Tensor], int | None]) -> None:
        self.graph = graph
        self._leaf = leaf
        self._names: dict[int, str] = {}
        self._inputs: dict[int, list[GraphNode | None]] = {}
        self._looks: dict[tuple[int, int], int] = {}

    def name(self, node: GraphNode) -> str:
        found = self._names.get(id(node.node))
        if found is None:
            found = self._names[id(node.node)] = plain(node.name)
        return found

    def inputs(self, node: GraphNode) -> list[GraphNode | None]:
        """The nodes of a node's inputs in order, None for inputs without gradient."""
        found = self._inputs.get(id(node.node))
        if found is None:
            found = [
                None if fn is None else self.graph.find(fn) for fn, _ in node.node.next_functions
            ]
            self._inputs[id(node.node)] = found
        return found

    def look(self, node: GraphNode, depth: int) -> int:
        """A hash of a node's neighbourhood: inputs in order, consumers as a bag."""
        key = id(node.node), depth
        found = self._looks.get(key)
        if found is not None:
            return found
        if depth == 0:
            variable = node.variable
            known = None if variable is None else (shape_of(variable), self._leaf(variable))
            found = hash((self.name(node), known))
        else:
            below = [0 if n is None else self.look(n, depth - 1) for n in self.inputs(node)]
            above = sorted(self.look(n, depth - 1) for n in self.graph.parents(node)[:16])
            found = hash((self.look(node, 0), tuple(below), tuple(above)))
        self._looks[key] = found
        return found
