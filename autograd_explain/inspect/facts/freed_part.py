"""What two backward passes share: the old part of a graph whose saved tensors were freed.

A backward frees each node as it passes, so after the failed one the new nodes above the old part
are freed too and the saved slots no longer tell old from new.  Whether its maker came before the
earlier backward does.  Where makers are not known the sequence numbers tell: the root of the
earlier backward, and what only it used, is not reachable from the new root, which leaves a gap in
the numbers of the nodes that are.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from ...model import Certainty, Place
from ...program import Source
from ..history import TraceEvent
from ..live.graph import Graph, GraphNode
from ..live.names import NamedTensor
from ..scene import Scene
from .assigned_names import NodesOfName, assigned_names, bound_place
from .call_levels import failing_path
from .statements import resolve, statement_at

#: AccumulateGrad nodes carry the largest number (torch/csrc/autograd/function.h).
_LEAF_SEQUENCE = 2**63


@dataclass(frozen=True, eq=False)
class FreedPart:
    """The part of the failing graph that an earlier backward freed.

    `boundary` is its newest node that the new part uses and `user` the oldest new node that uses
    it; `carrier` is the live tensor which `boundary` produced, if it lives; `maker` the statement
    that made it; `old` are all its nodes, newest first, `used` those that new nodes use.  `whole`
    tells that nothing new is in the graph: what failed went backward before.  `carried` is the
    name under which the old value is kept and read again ("self.state"), "" where none is seen.
    """

    boundary: GraphNode
    carrier: NamedTensor | None
    maker: TraceEvent | None
    whole: bool
    old: tuple[GraphNode, ...] = ()
    user: GraphNode | None = None
    carried: str = ""
    used: tuple[GraphNode, ...] = ()


def find_freed_part(scene: Scene) -> FreedPart | None:
    """The freed part of the graph of the failed backward, or None where no node is freed."""
    if next(scene.graph.freed(), None) is None:
        return None
    inner = [n for n in scene.graph.nodes if 0 <= n.sequence < _LEAF_SEQUENCE]
    old = _made_before(scene, inner) or _below_gap(inner)
    if not old:
        newest = inner[0]
        maker = scene.history.maker(newest)
        return FreedPart(newest, None, maker, whole=True, old=tuple(inner))
    whole = len(old) == len(inner)
    used = _used_by_new(scene.graph, old) or old
    carrier = _carrier(scene, used)
    boundary = used[0] if carrier is None else _node_of(scene.graph, carrier)
    known = {id(n) for n in old}
    users = [p for p in scene.graph.parents(boundary) if id(p) not in known]
    user = min(users, key=lambda n: n.sequence, default=None)
    maker = _maker(scene, carrier, boundary)
    carried = _carried_name(scene, maker, user)
    return FreedPart(boundary, carrier, maker, whole, tuple(old), user, carried, tuple(used))


def _carried_name(scene: Scene, maker: TraceEvent | None, user: GraphNode | None) -> str:
    """What the making statement assigns and the using one reads: `state` of an LSTM's pair."""
    reader = None if user is None else scene.history.maker(user)
    if maker is None or reader is None:
        return ""
    read = {o.replace(" ", "") for o in reader.operands}
    names = assigned_names(scene, bound_place(scene, maker)[-1])
    carried = (n for n in names if n.replace(" ", "") in read)
    return next((n for n in carried if not _given_again(scene, n, maker, reader)), "")


def _given_again(scene: Scene, name: str, maker: TraceEvent, reader: TraceEvent) -> bool:
    """Whether the name has got another value between the two."""
    values = NodesOfName(scene, name, bound_place(scene, maker)[-1])
    makers = (scene.history.maker(n) for n in scene.graph.nodes if n in values)
    return any(m is not None and maker.order < m.order < reader.order for m in makers)


def carried_across(scene: Scene, moment: TraceEvent) -> tuple[str, str]:
    """A state that a loop around the failing line carries past a moment with its graph.

    Its name at the failing line, and "tensor" or "tuple"; two empty texts where there is none.
    """
    nodes = [n for n in scene.graph.nodes if 0 <= n.sequence < _LEAF_SEQUENCE]
    makers = {id(n): scene.history.maker(n) for n in nodes}
    old = [n for n in nodes if (m := makers[id(n)]) is not None and m.order < moment.order]
    for node in _used_by_new(scene.graph, old):
        maker = makers[id(node)]
        if maker is None or not inside_failing_loop(scene, maker):
            continue
        for user in scene.graph.parents(node):
            name = _carried_name(scene, maker, user)
            if name and _begins_anew(scene, name, scene.history.maker(user)):
                continue
            value = resolve(_expression(name), scene.incident.user_frames[-1]) if name else None
            if isinstance(value, torch.Tensor):
                return name, "tensor"
            if isinstance(value, tuple):
                return name, "tuple"
    return "", ""


def _begins_anew(scene: Scene, name: str, reader: TraceEvent | None) -> bool:
    """Whether each round of the loop around the failing line gives the name a first value before
    it is read there: `total = 0.0`."""
    live = scene.incident.user_frames[-1]
    source = scene.program.source_of(live.code)
    if source is None or reader is None:
        return False
    loops = [n for n in ast.walk(source.tree) if isinstance(n, (ast.For, ast.While))]
    around = [n for n in loops if n.lineno < live.line <= (n.end_lineno or 0)]
    body = max(around, key=lambda n: n.lineno).body if around else []
    path = [p.line - source.offset for p in (*reader.chain, reader.place) if _is_in(p, source)]
    before = [s for s in body if isinstance(s, ast.Assign) and path and s.lineno < path[0]]
    return any(
        any(ast.unparse(t) == name for t in s.targets)
        and not any(ast.unparse(n) == name for n in ast.walk(s.value))
        for s in before
    )


def _is_in(place: Place, source: Source) -> bool:
    return (place.cell, place.file) == (source.cell, source.file)


def _expression(name: str) -> ast.expr | None:
    try:
        return ast.parse(name, mode="eval").body
    except SyntaxError:
        return None


def _maker(scene: Scene, carrier: NamedTensor | None, boundary: GraphNode) -> TraceEvent | None:
    made = None if carrier is None else scene.history.creation(carrier.tensor)
    return made or scene.history.maker(boundary)


def _node_of(graph: Graph, named: NamedTensor) -> GraphNode:
    node = graph.find(named.tensor.grad_fn)
    assert node is not None, "a carrier's grad_fn is in the graph"
    return node


def _made_before(scene: Scene, nodes: list[GraphNode]) -> list[GraphNode]:
    """The nodes made before the last backward, newest first, as far as makers are known."""
    calls = backward_calls(scene)
    if not calls:
        return []
    makers = [(n, scene.history.maker(n)) for n in nodes]
    old = [n for n, maker in makers if maker is not None and maker.order < calls[-1].order]
    # Two losses may both be made before the first backward, which passed only its own graph.
    reached = _reached_by(scene, calls[-1]) or _below_values(scene, calls, old)
    return [n for n in old if id(n.node) in reached] or old


def _below_values(scene: Scene, calls: tuple[TraceEvent, ...], old: list[GraphNode]) -> set[int]:
    """The nodes below what went backward, where the failing graph uses that again.

    `loss.backward(); losses.append(loss)`: everything else was made before and not freed.
    """
    found: set[int] = set()
    for call in {m.place: m for m in calls}.values():
        name = call.operands[0] if call.operands else ""
        values = NodesOfName(scene, name, call.place) if name.isidentifier() else ()
        for node in old:
            if node in values:
                _descend(scene.graph, node, found)
    return found


def _descend(graph: Graph, node: GraphNode, found: set[int]) -> None:
    todo = [node]
    while todo:
        node = todo.pop()
        if id(node.node) not in found:
            found.add(id(node.node))
            todo += [n for c in node.children if (n := graph.find(c)) is not None]


def _reached_by(scene: Scene, call: TraceEvent) -> set[int]:
    """The nodes below the tensor that went backward there, if it still lives under its name."""
    statement = statement_at(scene.program, call.place)
    frames = scene.incident.user_frames
    for node in ast.walk(statement) if statement is not None and frames else ():
        if not isinstance(node, ast.Attribute) or node.attr != "backward":
            continue
        root = resolve(node.value, frames[-1])
        if isinstance(root, torch.Tensor) and not any(root is r for r in scene.roots):
            made = scene.history.creation(root)
            if made is None or made.order < call.order:
                return {id(n.node) for n in Graph((root,)).nodes}
    return set()


def _below_gap(nodes: list[GraphNode]) -> list[GraphNode]:
    """The nodes older than the newest gap in the sequence numbers; () where there is none."""
    for i, (newer, older) in enumerate(pairwise(nodes)):
        if newer.sequence - older.sequence > 1:
            return nodes[i + 1 :]
    return []


def _used_by_new(graph: Graph, old: list[GraphNode]) -> list[GraphNode]:
    """The old nodes whose result a new node uses, newest first."""
    known = {id(n) for n in old}
    return [n for n in old if any(id(p) not in known for p in graph.parents(n))]


def _carrier(scene: Scene, used: list[GraphNode]) -> NamedTensor | None:
    """The live tensor that the newest of these nodes produced, if one lives."""
    produced: dict[int, NamedTensor] = {}
    for named in scene.names.tensors:
        grad_fn: Any = None if named.tensor.is_leaf else named.tensor.grad_fn
        if grad_fn is not None:
            produced.setdefault(id(grad_fn), named)
    return next((produced[id(n.node)] for n in used if id(n.node) in produced), None)


def backward_calls(scene: Scene) -> tuple[TraceEvent, ...]:
    """Every backward (and `autograd.grad`) the program called so far, oldest first.

    Not the failed one; and none that keeps the graph, where another one does not.
    """
    place = scene.place
    calls = [m for m in scene.history.steps if m.op == "backward" or _is_grad(m)]
    seen = scene.certainty is Certainty.OBSERVED  # the source is only followed up to the failure
    if seen and calls and place is not None and calls[-1].place.line == place.line:
        calls = calls[:-1]
    freeing = [m for m in calls if not _keeps_graph(scene, m)]
    return tuple(freeing or calls)


def _is_grad(moment: TraceEvent) -> bool:
    """`torch.autograd.grad(…)`, not `torch.func.grad(f)`."""
    return moment.op == "grad" and moment.operands[:1] not in (("torch.func",), ("func",))


def _keeps_graph(scene: Scene, moment: TraceEvent) -> bool:
    """Whether the call at a moment says `retain_graph=True` (or `create_graph=True`)."""
    statement = statement_at(scene.program, moment.place)
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement else []
    named = [c for c in calls if getattr(c.func, "attr", "") in ("backward", "grad")]
    if len(named) != 1:
        return False
    given = {k.arg: k.value for k in named[0].keywords}
    said = given.get("retain_graph", given.get("create_graph"))
    return isinstance(said, ast.Constant) and said.value is True


def came_before_loop(scene: Scene, moment: TraceEvent) -> bool:
    """Whether it happened before a loop around the failing line, in a round of one around that.

    `for epoch: draw(); for batch: …`: once for all rounds of the inner loop.
    """
    for made, failed in zip((*moment.chain, moment.place), failing_path(scene), strict=False):
        source = scene.program.source_at(failed)
        if source is None or (made.cell, made.file) != (failed.cell, failed.file):
            return False
        loops = [x for x in failing_loops(scene) if x[0] == source.filename]
        around = [x for x in loops if x[1] < failed.line <= x[2]]
        inner = max(around, key=lambda x: x[1], default=None)
        if made.line != failed.line:
            return inner is not None and made.line < inner[1]
    return False


def steps_since(scene: Scene, moment: TraceEvent) -> tuple[TraceEvent, ...]:
    """Optimizer steps after a moment."""
    return tuple(m for m in scene.history.steps if m.op == "step" and m.order > moment.order)


def failing_loops(scene: Scene) -> tuple[tuple[str, int, int], ...]:
    """The loops around the failing lines, outermost frame first: file name, first, last line."""
    found = []
    for live in scene.incident.user_frames:
        source = scene.program.source_of(live.code)
        for node in ast.walk(source.tree) if source is not None else ():
            if not isinstance(node, (ast.For, ast.While)):
                continue
            last = node.end_lineno or node.lineno
            if node.lineno < live.line <= last and source is not None:
                found.append((source.filename, node.lineno + source.offset, last + source.offset))
    return tuple(found)


def inside_failing_loop(scene: Scene, moment: TraceEvent) -> bool:
    """Whether a moment happened inside a loop around the failing line, directly or in a call."""
    for place in (*moment.chain, moment.place):
        source = scene.program.source_at(place)
        for filename, first, last in failing_loops(scene):
            if source is not None and source.filename == filename and first < place.line <= last:
                return True
    return False
