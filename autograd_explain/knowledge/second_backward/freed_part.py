"""What two backward passes share: the old part of a graph whose saved tensors were freed.

A backward frees each node as it passes, so after the failed one the new nodes above the old part
are freed too and the saved slots no longer tell old from new.  Whether its maker came before the
earlier backward does.  Where makers are not known, what the loop around the failure only reads is
old; else the sequence numbers tell: the root of the earlier backward, and what only it used, is
not reachable from the new root, which leaves a gap in the numbers of the nodes that are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import torch

from autograd_explain.inspect.dataflow.reaching_definitions import head_of
from autograd_explain.inspect.dataflow.safe_lookup import in_frame
from autograd_explain.inspect.facts.binding import Binding, NodesOfName, binding_of, carried_name
from autograd_explain.inspect.facts.container_puts import live_object
from autograd_explain.inspect.facts.failing_loops import failing_loops, given_by_round
from autograd_explain.inspect.facts.memoization import remembered
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.live.graph import Graph, GraphNode
from autograd_explain.inspect.live.names import NamedTensor, without_item
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Certainty, LineId, Place
from autograd_explain.nodes import GraphTraversal, start_of
from autograd_explain.program import called_name, is_of_package

from .kept_anew import KeptAnew, kept_anew
from .made_outside import (
    kept_inside,
    made_by_constructor,
    made_by_text,
    made_outside,
    read_in_loop,
    reads_of,
    stored_by_methods,
)

_SECONDS = 2.0
#: Methods and functions that go back from what they are called on or given.
GOING_BACK = ("grad", "backward", "manual_backward")


@dataclass(frozen=True, eq=False)
class FreedPart:
    """The part of the failing graph that an earlier backward (`first`) freed.

    `boundary` is its newest node that the new part uses; `carrier` is the live tensor which
    `boundary` produced, if it lives; `maker` the statement that made it, `binding` the one that
    keeps it; `reader` the oldest new moment that uses it.  `old` are all its nodes, newest first.
    `whole` tells that nothing new is in the graph: what failed went backward before;
    `leads_on` that the new part has leaves of its own.  `carried` is the name under which the old
    value is kept and read again ("self.state"), "" where none is seen.
    `made` and `newer` are what made the old and the other nodes, oldest first; `shared` the
    statements that keep what new nodes use of it, () where one of them is not known.
    `read_at` is where the loop around the failure first reads the carrier; `kept` is the state of
    an object that the old value was, where only that tells the old part from the new.
    """

    boundary: GraphNode
    carrier: NamedTensor | None
    first: TraceEvent | None
    maker: TraceEvent | None
    binding: Binding | None
    reader: TraceEvent | None
    whole: bool
    leads_on: bool
    carried: str
    old: tuple[GraphNode, ...]
    made: tuple[TraceEvent, ...]
    newer: tuple[TraceEvent, ...]
    shared: tuple[Binding, ...]
    read_at: Place | None
    kept: KeptAnew | None = None
    read_by: tuple[Place, ...] = ()  #: what reads it, where a constructor made it
    handed: tuple[TraceEvent, ...] = ()  #: what only gives the old value further names

    @property
    def lines(self) -> dict[LineId, bool]:
        """The lines that made the old part, and whether none of them made something new too."""
        newer = {moment.place.line_id for moment in self.newer}
        return {moment.place.line_id: moment.place.line_id not in newer for moment in self.made}

    @property
    def read_once(self) -> bool:
        """Whether the new part reads the carried value at one line, which it passes only once."""
        at = None if self.reader is None else self.reader.place.line_id
        times = {m.order for m in self.newer if m.place.line_id == at}
        return bool(self.carried) and len(times) == 1


def leading_to(scene: Scene, nodes: Iterable[GraphNode]) -> tuple[NamedTensor, ...]:
    """The live tensors in the failing graph that some of its nodes, or what was computed from them,
    produced."""
    above = {id(n) for n in scene.graph.above(nodes)}
    inner = (n for n in scene.names.tensors if not n.tensor.is_leaf)
    return tuple(n for n in inner if id(scene.graph.find(n.tensor.grad_fn)) in above)


def old_names(scene: Scene, part: FreedPart) -> tuple[str, ...]:
    """The live names of the old value; of a graph that holds nothing new those of its root."""
    if part.carrier is not None:
        return scene.names.of(part.carrier.tensor)
    return scene.names.of(scene.roots[0]) if part.whole and scene.roots else ()


def earlier_backwards(scene: Scene) -> tuple[TraceEvent, ...]:
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
    statement = scene.program.statement_at(moment.place)
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement else []
    named = [c for c in calls if getattr(c.func, "attr", "") in ("backward", "grad")]
    if len(named) != 1:
        return False
    given = {k.arg: k.value for k in named[0].keywords}
    said = given.get("retain_graph", given.get("create_graph"))
    return isinstance(said, ast.Constant) and said.value is True


def freed_part(scene: Scene, calls: tuple[TraceEvent, ...]) -> FreedPart:
    """The part of the failing graph that these earlier calls freed; some node of it is."""
    graph = scene.graph
    inner = graph.inner
    before = _made_before(scene, calls) or made_outside(scene)
    kept = None if before else kept_anew(scene)
    views = _views(scene, before) if before else []
    before = [n for n in before if all(n is not v for v in views)]
    apart = before or (graph.below_gap() if kept is None else _below(graph, kept.node))
    old = apart or inner
    used = graph.used_outside(apart) or apart
    known = {id(n) for n in old}
    leads_on = graph.ends_at(lambda n: id(n) in known)
    carrier = _carrier(scene, used)
    boundary = _boundary(graph, carrier, used or inner)
    made = scene.makers(old) or _created(scene, old)
    maker = _maker(scene, carrier, boundary) or next(reversed(made), None)
    constructed = None if kept is not None else _constructed(scene, carrier, maker)
    if before and carrier is None:
        kept = _seen_kept(scene, used, maker)
    reader = _oldest_reader(scene, [boundary, *views], [*apart, *views])
    makers = scene.makers(used)
    newer = scene.makers(n for n in graph.nodes if id(n) not in known)
    bindings = [binding_of(scene.program, m) for m in makers]
    shared = tuple({b.place.line_id: b for b in bindings}.values())
    part = FreedPart(
        boundary=boundary,
        carrier=carrier,
        first=calls[-1] if calls else None,
        maker=maker or constructed,
        binding=_binding(scene, maker or constructed, kept),
        reader=reader,
        whole=len(old) == len(inner),
        leads_on=leads_on,
        carried=carried_name(scene, maker, reader) or ("" if kept is None else kept.name),
        old=tuple(old),
        made=made,
        newer=newer,
        shared=shared if len(makers) == len(used) else (),
        read_at=None if carrier is None else read_in_loop(scene, carrier.name),
        kept=kept,
        handed=scene.makers(views),
        read_by=() if constructed is None or carrier is None else reads_of(scene, carrier.name),
    )
    return _computed_before(scene, part)


def _computed_before(scene: Scene, part: FreedPart) -> FreedPart:
    """With the statements before the loop that the text tells of the old value.  They tell all of
    it where nothing else does; where an object of a package has computed it when a round asked; and
    where what a round has made of the value (a cache that grows) is on the only way to what is
    trained: no end of the graph there would leave anything to train."""
    inside = part.maker is not None and failing_loops(scene).hold(part.maker)
    made = () if part.maker is None else part.maker.path
    anew = inside and (part.leads_on or remembered(scene.program, made, scene.path))
    nodes = tuple(scene.graph.inner) if inside and not anew else part.old
    apart = part.carrier if part.maker is None and part.kept is None else None
    read = kept_inside(scene, {id(n.node) for n in nodes}) if part.carrier is None else None
    before = () if read is None else made_by_text(scene, read.name)
    if anew and not before:
        return part
    if not before:
        read, before = _read_from_outside(scene, nodes, apart)
    if read is None and inside:
        read, before = part.carrier, _made_with_holder(scene, part)
    if read is None or not before:
        return part
    if part.maker is not None and not inside:
        lines = {place.line_id for moment in part.made for place in moment.path}
        return replace(part, handed=tuple(m for m in before if m.place.line_id not in lines))
    return replace(
        part,
        carrier=read,
        maker=before[-1],
        binding=binding_of(scene.program, before[-1]),
        reader=None,
        whole=False,
        carried="",
        made=before,
        read_at=read_in_loop(scene, read.name),
        kept=None,
    )


def _made_with_holder(scene: Scene, part: FreedPart) -> tuple[TraceEvent, ...]:
    """What made the old part before the loop, where the last of it made the object that computes
    the old value when it is asked for, and keeps it: the next round needs another such object."""
    name = "" if part.carrier is None else part.carrier.name
    before = tuple(m for m in part.made if not failing_loops(scene).hold(m))
    lines = {m.place.line_id: m for m in before}  # the last of each, in the order of the first
    bound = binding_of(scene.program, before[-1]).names if "." in name and before else ()
    own = stored_by_methods(scene, scene.names.holder(name), name)
    return tuple(lines.values()) if head_of(name) in bound and not own else ()


def _read_from_outside(
    scene: Scene, nodes: tuple[GraphNode, ...], apart: NamedTensor | None
) -> tuple[NamedTensor | None, tuple[TraceEvent, ...]]:
    """A tensor of these nodes that the loop reads under a name of before, and what made that; of
    what an object of a package keeps only the one that is known to lie apart."""
    known = {id(n.node) for n in nodes}
    roots = {id(r) for r in scene.roots}
    for named in scene.names.tensors:
        grad_fn: Any = None if named.tensor.is_leaf else named.tensor.grad_fn
        if id(grad_fn) in known and id(named.tensor) not in roots:
            # What else an object of a package keeps, it may have made in any call.
            holder = scene.names.holder(named.name)
            foreign = is_of_package(type(holder))
            if foreign and (named is not apart or is_a(holder, torch.nn.Module)):
                continue
            if read_in_loop(scene, named.name) is not None:
                made = made_by_text(scene, named.name)
                owner = live_object(scene, head_of(named.name)) if foreign else holder
                later = foreign or stored_by_methods(scene, holder, named.name)
                if made and not (later and _begins(scene, made[-1], owner)):
                    return named, made
    return None, ()


def _begins(scene: Scene, made: TraceEvent, owner: object) -> bool:
    """Whether a statement only makes the object, whose methods store there what it keeps later."""
    value = getattr(scene.program.statement_at(made.place), "value", None)
    return isinstance(value, ast.Call) and called_name(value) == type(owner).__name__


def _below(graph: Graph, node: GraphNode) -> list[GraphNode]:
    """What a node was computed from and itself, newest first."""
    below = {id(n) for n in graph.below([node])}
    return [n for n in graph.inner if id(n) in below]


def _seen_kept(scene: Scene, used: list[GraphNode], maker: TraceEvent | None) -> KeptAnew | None:
    """The state of an object that one of the used nodes made, where the way to what made it passes
    the statement that keeps it."""
    kept = None if maker is None else kept_anew(scene)
    if maker is None or kept is None or all(n is not kept.node for n in used):
        return None
    lines = [place.line_id for place in maker.path]
    at = kept.binding.place
    if isinstance(getattr(kept.binding.statement, "value", None), ast.Name):
        if maker.inside is None:  # the line that computed it names it
            return None
        inner = [p for p in maker.path if p.function_id == at.function_id]
        return replace(kept, binding=Binding((at,), kept.binding.statement)) if inner else None
    if at.line_id not in lines[:-1]:  # the line itself has the name already
        return None
    path = maker.path[: lines.index(at.line_id) + 1]
    return replace(kept, binding=Binding(path, kept.binding.statement))


def _binding(scene: Scene, maker: TraceEvent | None, kept: KeptAnew | None) -> Binding | None:
    if kept is not None:
        return kept.binding
    return None if maker is None else binding_of(scene.program, maker)


def _made_before(scene: Scene, calls: tuple[TraceEvent, ...]) -> list[GraphNode]:
    """The nodes made before the last backward, newest first, as far as makers are known; what came
    before one of them is old, too."""
    if not calls:
        return []
    makers = [(n, scene.history.maker(n)) for n in scene.graph.inner]
    orders = [(n, None if maker is None else maker.order) for n, maker in makers]
    end = calls[-1].order
    last = max((n.sequence for n, at in orders if at is not None and at < end), default=0)
    old = [n for n, at in orders if (n.sequence < last if at is None else at < end)]
    # Two losses may both be made before the first backward, which passed only its own graph.
    reached = _reached_by(scene, calls[-1]) or _below_values(scene, calls, old)
    if not reached and not given_by_round(scene).isdisjoint(_root_names(scene)):
        reached = {id(n.node) for n in scene.graph.below_gap()}
    found = [n for n in old if id(n.node) in reached] or old
    return _with_unseen(scene, found)


def _views(scene: Scene, old: list[GraphNode]) -> list[GraphNode]:
    """What the loops of the failing function have made of the old values, at their heads too, and
    nothing was freed of: parts and other shapes of what these were given.  [] where there is no
    more than that."""
    place, loops = scene.place, failing_loops(scene)
    function = "" if place is None else place.function_id
    heads = {loop.first for loop in loops.loops if place is not None and loop.is_of(place)}
    found = [
        n
        for n in old
        if (made := scene.history.maker(n)) is not None
        for p in made.path
        if p.function_id == function and (loops.around(p) or p.line in heads)
    ]
    whole = len(old) in (len(found), len(scene.graph.inner))
    return [] if whole or any(n.freed_slots for n in found) else found


def _with_unseen(scene: Scene, old: list[GraphNode]) -> list[GraphNode]:
    """With what is computed of old nodes alone before the newest gap, by no statement that is
    known: `torch.stack(self.values)` in a method that the source was not followed into."""
    known = {id(n.node) for n in old}
    for node in reversed(scene.graph.below_gap()):
        used = [n for child in node.children if (n := scene.graph.find(child)) is not None]
        if used and all(id(n.node) in known for n in used) and scene.history.maker(node) is None:
            known.add(id(node.node))
    return [n for n in scene.graph.inner if id(n.node) in known]


def _below_values(scene: Scene, calls: tuple[TraceEvent, ...], old: list[GraphNode]) -> set[int]:
    """The nodes below what went backward, where the failing graph uses that again.

    `loss.backward(); losses.append(loss)`: everything else was made before and not freed.
    """
    distinct = {m.place: m for m in calls}.values()
    names = ((m.operands[0], m.place) for m in distinct if m.operands)
    values = [NodesOfName(scene, name, at) for name, at in names if name.isidentifier()]
    starts = [n for n in old if any(n in of_name for of_name in values)]
    return {id(n.node) for n in scene.graph.below(starts)}


def _reached_by(scene: Scene, call: TraceEvent) -> set[int]:
    """The nodes below what went backward there, as far as it still lives."""
    made = ((root, scene.history.creation(root)) for root in _went_backward(scene, call))
    old = [root for root, moment in made if moment is None or moment.order < call.order]
    below = GraphTraversal(map(start_of, old), seconds=_SECONDS)
    return {id(reached.node) for reached in below}


def _went_backward(scene: Scene, call: TraceEvent) -> Iterator[torch.Tensor]:
    """The tensor that a call names, `loss.backward()` or `grad(loss, …)`, where it still has its
    name; in a loop over losses those of the rounds before: what holds the one that failed holds
    them too, and before it."""
    statement, frames = scene.program.statement_at(call.place), scene.incident.user_frames
    nodes = [*ast.walk(statement)] if statement is not None and frames else []
    for root in (*map(_owner, nodes), *map(_given, nodes)):
        value = None if root is None else in_frame(root, frames[-1].frame)
        if isinstance(value, torch.Tensor) and not any(value is r for r in scene.roots):
            yield value
            return
    if scene.place is None or call.place.line_id != scene.place.line_id:
        return
    for holder in dict.fromkeys(without_item(n) for n in _root_names(scene) if n.endswith("]")):
        held = [n.tensor for n in scene.names.tensors if without_item(n.name) == holder != n.name]
        yield from takewhile(lambda tensor: all(tensor is not r for r in scene.roots), held)


def _root_names(scene: Scene) -> Iterator[str]:
    return (n for root in scene.roots for n in scene.names.of(root))


def _owner(node: ast.AST) -> ast.expr | None:
    """`loss` of `loss.backward`."""
    return node.value if isinstance(node, ast.Attribute) and node.attr == "backward" else None


def _given(node: ast.AST) -> ast.expr | None:
    """`loss` of `grad(loss, …)`, `engine.backward(loss)` and their like."""
    named = isinstance(node, ast.Call) and called_name(node) in GOING_BACK
    return next(iter(node.args), None) if named and isinstance(node, ast.Call) else None


def _created(scene: Scene, old: list[GraphNode]) -> tuple[TraceEvent, ...]:
    """What made the nodes, where each of them produced a tensor that lives under a name."""
    open_, made = {id(n.node) for n in old}, []
    for named in scene.names.tensors:
        grad_fn = None if named.tensor.is_leaf else named.tensor.grad_fn
        created = scene.history.creation(named.tensor) if id(grad_fn) in open_ else None
        if created is not None:
            open_.discard(id(grad_fn))
            made.append(created)
    return () if open_ else tuple(sorted(made, key=lambda moment: moment.order))


def _boundary(graph: Graph, named: NamedTensor | None, used: list[GraphNode]) -> GraphNode:
    if named is None:
        return used[0]
    node = graph.find(named.tensor.grad_fn)
    assert node is not None, "a carrier's grad_fn is in the graph"
    return node


def _maker(scene: Scene, carrier: NamedTensor | None, boundary: GraphNode) -> TraceEvent | None:
    made = None if carrier is None else scene.history.creation(carrier.tensor)
    return made or scene.history.maker(boundary)


def _oldest_reader(scene: Scene, nodes: list[GraphNode], old: list[GraphNode]) -> TraceEvent | None:
    known = {id(n) for n in old}
    users = [p for node in nodes for p in scene.graph.parents(node) if old and id(p) not in known]
    user = min(users, key=lambda n: n.sequence, default=None)
    return None if user is None else scene.history.maker(user)


def _constructed(
    scene: Scene, carrier: NamedTensor | None, maker: TraceEvent | None
) -> TraceEvent | None:
    """What made the value in a constructor, where a library's loop goes back to it; the text alone
    tells it where the history does not."""
    name = "" if carrier is None or failing_loops(scene) else carrier.name
    made = made_by_constructor(scene, name)
    if made is None or maker is None:
        return made
    return maker if made.place.line_id in [p.line_id for p in maker.path] else None


def _carrier(scene: Scene, used: list[GraphNode]) -> NamedTensor | None:
    """The live tensor that the newest of these nodes produced, if one lives."""
    produced: dict[int, NamedTensor] = {}
    for named in scene.names.tensors:
        grad_fn: Any = None if named.tensor.is_leaf else named.tensor.grad_fn
        if grad_fn is not None:
            produced.setdefault(id(grad_fn), named)
    return next((produced[id(n.node)] for n in used if id(n.node) in produced), None)
