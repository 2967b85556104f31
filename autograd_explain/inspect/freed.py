"""What two backward passes share: the old part of a graph whose saved tensors were freed.

Nodes with a freed slot went through a backward before.  Nodes with slots that are intact are new.
The *carrier* is the tensor that brought the old part into the new graph.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..model import Place
from .graph import Graph, GraphNode, is_freed
from .history import Moment
from .names import NamedTensor
from .scene import Scene
from .statements import statement_at


@dataclass(frozen=True, eq=False)
class FreedPart:
    """The part of the failing graph that an earlier backward freed.

    `boundary` is its newest node; `carrier` the live tensor whose graph it is, if one lives;
    `maker` the statement that made it; `whole` tells that nothing new is in the graph, so the
    failing loss itself (or its whole forward pass) went backward before.
    """

    boundary: GraphNode
    carrier: NamedTensor | None
    maker: Moment | None
    whole: bool


def find_freed_part(scene: Scene) -> FreedPart | None:
    """The freed part of the graph of the failed backward, or None where no node is freed."""
    census = _Census(scene.graph)
    if not census.freed:
        return None
    carrier = _carrier(scene, census)
    boundary = census.boundary
    maker = None
    if carrier is not None:
        maker = scene.history.creation(carrier.tensor)
        node = scene.graph.find(carrier.tensor.grad_fn)
        if maker is None and node is not None:
            maker = scene.history.maker(node)
    if maker is None:
        maker = scene.history.maker(boundary)
    return FreedPart(boundary, carrier, maker, not census.fresh)


class _Census:
    """Which nodes are freed, which are fresh, and which lead to them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.freed = [n for n in graph.nodes if n.slots() and is_freed(n)]
        gone = {id(n) for n in self.freed}
        self.fresh = [n for n in graph.nodes if n.slots() and id(n) not in gone and _saves(n)]

    @cached_property
    def boundary(self) -> GraphNode:
        """The newest freed node that a fresh node leads to; the newest freed one if none does."""
        first_new = min((n.sequence for n in self.fresh), default=None)
        old = [n for n in self.freed if first_new is None or n.sequence < first_new]
        return max(old or self.freed, key=lambda n: n.sequence)

    @cached_property
    def reaches_freed(self) -> set[int]:
        return self._upwards(self.freed)

    @cached_property
    def reaches_fresh(self) -> set[int]:
        return self._upwards(self.fresh)

    def _upwards(self, start: list[GraphNode]) -> set[int]:
        """Ids of torch nodes from which one of `start` can be reached."""
        found = {id(n.node) for n in start}
        frontier = list(start)
        while frontier:
            for parent in self.graph.parents(frontier.pop()):
                if id(parent.node) not in found:
                    found.add(id(parent.node))
                    frontier.append(parent)
        return found


def _saves(node: GraphNode) -> bool:
    return any(node.raw(slot) for slot in node.slots())


def _carrier(scene: Scene, census: _Census) -> NamedTensor | None:
    """The live tensor with the largest graph that is old altogether."""
    roots = {id(r) for r in scene.roots}
    best: tuple[int, NamedTensor] | None = None
    for named in scene.names.tensors:
        grad_fn: Any = None if named.tensor.is_leaf else named.tensor.grad_fn
        node = None if grad_fn is None else scene.graph.find(grad_fn)
        if node is None or id(named.tensor) in roots:
            continue
        old = id(grad_fn) in census.reaches_freed and id(grad_fn) not in census.reaches_fresh
        if old and (best is None or node.sequence > best[0]):
            best = (node.sequence, named)
    return None if best is None else best[1]


def backward_calls(scene: Scene) -> tuple[Moment, ...]:
    """Every backward the program called so far, oldest first, the failed one left out."""
    place = scene.place
    calls = [m for m in scene.history.steps if m.op == "backward"]
    if calls and place is not None and calls[-1].place.line == place.line:
        calls = calls[:-1]
    return tuple(calls)


def steps_since(scene: Scene, moment: Moment) -> tuple[Moment, ...]:
    """Optimizer steps after a moment."""
    return tuple(m for m in scene.history.steps if m.op == "step" and m.order > moment.order)


def assigned_names(scene: Scene, place: Place | None) -> tuple[str, ...]:
    """What the statement at a place assigns to, attributes first: they outlive the call."""
    statement = statement_at(scene.program, place)
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            targets.extend(target.elts if isinstance(target, ast.Tuple) else [target])
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        targets.append(statement.target)
    targets.sort(key=lambda t: not isinstance(t, (ast.Attribute, ast.Subscript)))
    return tuple(ast.unparse(t) for t in targets)


def failing_loops(scene: Scene) -> tuple[tuple[str, int, int], ...]:
    """The loops around the failing lines, outermost frame first: file name, first, last line."""
    found = []
    for live in scene.incident.user_frames:
        source = scene.program.source(live.filename)
        for node in ast.walk(source.tree) if source is not None else ():
            if not isinstance(node, (ast.For, ast.While)):
                continue
            last = node.end_lineno or node.lineno
            if node.lineno < live.line <= last and source is not None:
                found.append((source.filename, node.lineno + source.offset, last + source.offset))
    return tuple(found)


def inside_failing_loop(scene: Scene, moment: Moment) -> bool:
    """Whether a moment happened inside a loop that the failing line is in, directly or in a call."""
    for place in (*moment.chain, moment.place):
        source = scene.program.source_at(place)
        for filename, first, last in failing_loops(scene):
            if source is not None and source.filename == filename and first < place.line <= last:
                return True
    return False
