"""What two backward passes share: the old part of a graph whose saved tensors were freed.

A backward frees each node as it passes, so after the failed one the new nodes above the old part
are freed too and the saved slots no longer tell old from new.  Whether its maker came before the
earlier backward does.  Where makers are not known the sequence numbers tell: the root of the
earlier backward, and what only it used, is not reachable from the new root, which leaves a gap in
the numbers of the nodes that are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..history import TraceEvent
from ..live.graph import Graph, GraphNode
from ..live.names import NamedTensor
from ..scene import Scene
from .binding import Binding, binding_of, carried_name
from .earlier_backward import backward_calls, made_before


@dataclass(frozen=True, eq=False)
class FreedPart:
    """The part of the failing graph that an earlier backward (`first`) freed.

    `boundary` is its newest node that the new part uses; `carrier` is the live tensor which
    `boundary` produced, if it lives; `maker` the statement that made it, `binding` the one that
    keeps it; `reader` the oldest new moment that uses it.  `old` are all its nodes, newest first.
    `whole` tells that nothing new is in the graph: what failed went backward before.  `carried` is
    the name under which the old value is kept and read again ("self.state"), "" where none is seen.
    `made` and `newer` are what made the old and the other nodes, oldest first; `shared` the
    statements that keep what new nodes use of it, () where one of them is not known.
    """

    boundary: GraphNode
    carrier: NamedTensor | None
    first: TraceEvent | None
    maker: TraceEvent | None
    binding: Binding | None
    reader: TraceEvent | None
    whole: bool
    carried: str
    old: tuple[GraphNode, ...]
    made: tuple[TraceEvent, ...]
    newer: tuple[TraceEvent, ...]
    shared: tuple[Binding, ...]

    @property
    def read_once(self) -> bool:
        """Whether the new part reads the carried value at one line, which it passes only once."""
        at = None if self.reader is None else self.reader.place.line_id
        times = {m.order for m in self.newer if m.place.line_id == at}
        return bool(self.carried) and len(times) == 1


def find_freed_part(scene: Scene) -> FreedPart | None:
    """The freed part of the graph of the failed backward, or None where no node is freed."""
    graph = scene.graph
    if next(graph.freed(), None) is None:
        return None
    inner, calls = graph.inner, backward_calls(scene)
    apart = made_before(scene, calls) or graph.below_gap()
    old = apart or inner
    used = graph.used_outside(apart) or apart
    carrier = _carrier(scene, used)
    boundary = _boundary(graph, carrier, used or inner)
    maker = _maker(scene, carrier, boundary)
    reader = _oldest_reader(scene, boundary, apart)
    known = {id(n) for n in old}
    makers, made = scene.makers(used), scene.makers(old)
    newer = scene.makers(n for n in graph.nodes if id(n) not in known)
    bindings = [binding_of(scene.program, m) for m in makers]
    shared = tuple({b.place.line_id: b for b in bindings}.values())
    return FreedPart(
        boundary=boundary,
        carrier=carrier,
        first=calls[-1] if calls else None,
        maker=maker,
        binding=None if maker is None else binding_of(scene.program, maker),
        reader=reader,
        whole=len(old) == len(inner),
        carried=carried_name(scene, maker, reader),
        old=tuple(old),
        made=made,
        newer=newer,
        shared=shared if len(makers) == len(used) else (),
    )


def _boundary(graph: Graph, named: NamedTensor | None, used: list[GraphNode]) -> GraphNode:
    if named is None:
        return used[0]
    node = graph.find(named.tensor.grad_fn)
    assert node is not None, "a carrier's grad_fn is in the graph"
    return node


def _maker(scene: Scene, carrier: NamedTensor | None, boundary: GraphNode) -> TraceEvent | None:
    made = None if carrier is None else scene.history.creation(carrier.tensor)
    return made or scene.history.maker(boundary)


def _oldest_reader(scene: Scene, node: GraphNode, old: list[GraphNode]) -> TraceEvent | None:
    known = {id(n) for n in old}
    users = [p for p in scene.graph.parents(node) if old and id(p) not in known]
    user = min(users, key=lambda n: n.sequence, default=None)
    return None if user is None else scene.history.maker(user)


def _carrier(scene: Scene, used: list[GraphNode]) -> NamedTensor | None:
    """The live tensor that the newest of these nodes produced, if one lives."""
    produced: dict[int, NamedTensor] = {}
    for named in scene.names.tensors:
        grad_fn: Any = None if named.tensor.is_leaf else named.tensor.grad_fn
        if grad_fn is not None:
            produced.setdefault(id(grad_fn), named)
    return next((produced[id(n.node)] for n in used if id(n.node) in produced), None)
