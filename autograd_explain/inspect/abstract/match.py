"""Pairs the live graph's nodes with those of the stand-ins' graph, whose statements are known."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from ..graph import Graph, GraphNode

_DIGITS = re.compile(r"\d+$")
#: Names that differ by device or build for one and the same operation.
_SAME = {
    "CudnnBatchNormBackward": "NativeBatchNormBackward",
    "MiopenBatchNormBackward": "NativeBatchNormBackward",
    "MkldnnConvolutionBackward": "ConvolutionBackward",
    "CudnnConvolutionBackward": "ConvolutionBackward",
    "ThnnFusedLstmCellBackward": "CudnnRnnBackward",
}
_ROUNDS = 4


def plain_name(node: GraphNode) -> str:
    """A node's name without the number of its overload, the same on every device."""
    name = _DIGITS.sub("", node.name)
    return _SAME.get(name, name)


class Pairing:
    """Live graph nodes -> the stand-in nodes that correspond to them.

    First both graphs are walked together from their roots, along equal names: where that goes
    through the answer is exact.  The rest is compared by neighbourhood (names, leaves, order of
    the inputs, to a depth), which leaves several stand-ins for the middle of a long loop.
    """

    def __init__(self, live: Graph, twin: Graph, leaves: Mapping[int, int]) -> None:
        self.live = live
        self.twin = twin
        self._leaves = leaves
        self.exact: dict[int, GraphNode] = {}
        self._walk_together()
        self._live_index: dict[int, Any] = {}
        self._twin_index: dict[Any, list[GraphNode]] | None = None

    @property
    def complete(self) -> bool:
        """Whether every live node has its stand-in."""
        return len(self.exact) == len(self.live.nodes)

    def candidates(self, node: GraphNode) -> tuple[GraphNode, ...]:
        """The stand-in nodes that may correspond to a live one; () where nothing fits."""
        found = self.exact.get(id(node.node))
        if found is not None:
            return (found,)
        return self._alike(node)

    def _walk_together(self) -> None:
        twins: set[int] = set()
        todo: list[tuple[Any, Any]] = [
            (a.grad_fn, b.grad_fn) for a, b in zip(self.live.roots, self.twin.roots)
        ]
        while todo:
            a, b = todo.pop()
            live = None if a is None else self.live.find(a)
            twin = None if b is None else self.twin.find(b)
            if live is None or twin is None or id(a) in self.exact or id(b) in twins:
                continue
            if not self._equal(live, twin):
                continue
            self.exact[id(a)] = twin
            twins.add(id(b))
            todo.extend((x, y) for (x, _), (y, _) in zip(a.next_functions, b.next_functions))

    def _equal(self, live: GraphNode, twin: GraphNode) -> bool:
        if plain_name(live) != plain_name(twin):
            return False
        a, b = live.variable, twin.variable
        if a is not None and b is not None:
            if a.shape != b.shape:
                return False
            known = self._leaves.get(id(a))
            return known is None or known == id(b)
        return len(live.node.next_functions) == len(twin.node.next_functions)

    def _alike(self, node: GraphNode) -> tuple[GraphNode, ...]:
        best: tuple[GraphNode, ...] = ()
        for rounds in range(1, _ROUNDS + 1):
            found = self._index(rounds).get(self._signature(self.live, node, rounds, True), ())
            if not found:
                break
            best = tuple(found)
            if len({n.sequence for n in best}) == 1:
                break
        return best

    def _index(self, rounds: int) -> dict[Any, list[GraphNode]]:
        cache = self.__dict__.setdefault("_indices", {})
        if rounds not in cache:
            table: dict[Any, list[GraphNode]] = defaultdict(list)
            for node in self.twin.nodes:
                table[self._signature(self.twin, node, rounds, False)].append(node)
            cache[rounds] = table
        return cache[rounds]  # type: ignore[no-any-return]

    def _signature(self, graph: Graph, node: GraphNode, depth: int, live: bool) -> Any:
        memo = self.__dict__.setdefault("_signatures", {})
        return _look(graph, node, depth, self._leaves if live else None, memo)


def _look(
    graph: Graph,
    node: GraphNode,
    depth: int,
    leaves: Mapping[int, int] | None,
    memo: dict[Any, Any],
) -> Any:
    """A hash of a node's neighbourhood: inputs in order, consumers as a bag."""
    key = id(node.node), depth, leaves is None
    found = memo.get(key)
    if found is not None:
        return found
    name: Any = plain_name(node)
    variable = node.variable
    if variable is not None:
        known = id(variable) if leaves is None else leaves.get(id(variable))
        name = (name, tuple(variable.shape), known)
    if depth == 0:
        found = hash(name)
    else:
        inputs = tuple(
            _look(graph, child, depth - 1, leaves, memo) for child in _nodes(graph, node.children)
        )
        users = sorted(_look(graph, p, depth - 1, leaves, memo) for p in graph.parents(node))
        found = hash((name, inputs, tuple(users[:8])))
    memo[key] = found
    return found


def _nodes(graph: Graph, children: Iterable[Any]) -> list[GraphNode]:
    return [found for c in children if (found := graph.find(c)) is not None]
