"""The part of the graph that a failure is about, as lines of the user's: from the saved value that
was overwritten to the loss, or what an earlier backward has freed and what was computed from it.

Nodes of one line are one line of the picture, so repeated layers and iterations fold by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .inspect.facts.overwrite import find_overwrite
from .model import Certainty, Finding, GraphLine, LineId, Place, Role, What

if TYPE_CHECKING:
    from .inspect.history import TraceEvent
    from .inspect.live.graph import GraphNode
    from .inspect.scene import Scene

MOST_LINES = 12
_MOST_NODES = 4_000
_MOST_LEAVES = 40  #: whose names are looked up
_LEAF_DEPTH = 3  #: nodes between a line's own and a leaf (a transposed weight)


def lines_to_the_loss(scene: Scene, finding: Finding) -> tuple[GraphLine, ...]:
    """The lines that the overwritten value's gradient passes, and those that wrote to it; or those
    that the second backward passes, and the one that freed them.  In the order of time; () where
    one of them, or their order, is not known."""
    if finding.freed:
        return _second_pass(scene, finding)
    culprit = finding.tensor(Role.CULPRIT)
    if culprit is None or culprit.saved_version in (None, culprit.current_version):
        return ()
    found = find_overwrite(scene)
    if found is None or found.maker is None or not found.writes:
        return ()
    path = scene.graph.above([found.saved.node])
    if len(path) > _MOST_NODES:
        return ()
    drawing = _Drawing(scene, path)
    if drawing.unknown or not _tells_the_same(finding, found.maker, found.writes):
        return ()
    return _shortened(drawing.lines(found.writes))


def _second_pass(scene: Scene, finding: Finding) -> tuple[GraphLine, ...]:
    nodes = scene.graph.inner
    freeing = _freeing(scene, finding)
    if freeing is None or len(nodes) > _MOST_NODES:
        return ()
    drawing = _Drawing(scene, nodes)
    lines = drawing.lines([freeing])
    drawn = {line.place.line_id for line in lines if line.place is not None}
    told = {e.place.line_id for e in finding.events if e.what is not What.FAILED and e.place}
    if drawing.unknown or not told <= drawn:
        return ()
    return _shortened(tuple(_with_freed(line, finding) for line in lines))


def _freeing(scene: Scene, finding: Finding) -> TraceEvent | None:
    """The earlier backward, as a moment of the history."""
    place = finding.place(What.FREED)
    found = [m for m in scene.history.steps if m.op in ("backward", "grad")]
    if scene.certainty is Certainty.OBSERVED and found and found[-1].place == scene.place:
        found.pop()  # the one that failed
    at = [m for m in found if place is not None and m.place.line_id == place.line_id]
    return at[-1] if at else None


def _with_freed(line: GraphLine, finding: Finding) -> GraphLine:
    every = None if line.place is None else finding.freed.get(line.place.line_id)
    return line if every is None else replace(line, freed="all" if every else "first")


def _tells_the_same(finding: Finding, maker: TraceEvent, writes: Sequence[TraceEvent]) -> bool:
    """Whether what the report says of the saving and the writing line is what is drawn."""
    saved, written = finding.place(What.SAVED), {w.place.line_id for w in writes}
    told = {e.place.line_id for e in finding.events if e.what is What.CHANGED and e.place}
    return saved is not None and saved.line_id == maker.place.line_id and told <= written


@dataclass
class _Line:
    """What is known of a line while the graph is walked."""

    place: Place
    order: int
    inputs: set[LineId] = field(default_factory=set)
    leaves: dict[str, None] = field(default_factory=dict)
    runs: dict[object, set[int]] = field(default_factory=dict)  #: moments of each operation


class _Drawing:
    """The nodes of a path gathered by their lines."""

    def __init__(self, scene: Scene, path: Iterable[GraphNode]) -> None:
        self._scene = scene
        self._looked_up = 0
        self._lines: dict[LineId, _Line] = {}
        self.unknown = False
        # Older nodes first, so that a node's operands are known when its turn comes.
        nodes = sorted(path, key=lambda node: node.sequence)
        self._path = {id(node.node) for node in nodes}
        self._at: dict[int, set[LineId]] = {}
        for node in nodes:
            self._add(node)

    def _add(self, node: GraphNode) -> None:
        below: set[LineId] = set()
        for child in node.children:
            below |= self._at.get(id(child), set())
        moment = self._scene.history.maker(node)
        if moment is None:
            # Nodes that no statement stands for (a view made again) pass on what they are made of.
            self._at[id(node.node)] = below
            self.unknown = self.unknown or not below
            return
        at = moment.place.line_id
        line = self._lines.setdefault(at, _Line(moment.place, moment.order))
        line.order = min(line.order, moment.order)
        line.inputs |= below - {at}
        line.leaves.update(dict.fromkeys(self._leaves(node, at)))
        line.runs.setdefault((moment.op, moment.place.span), set()).add(moment.order)
        self._at[id(node.node)] = {at}

    def _leaves(self, node: GraphNode, at: LineId) -> Iterator[str]:
        """The names of the leaves that a line reads itself."""
        waiting = [(child, 0) for child in node.children if id(child) not in self._path]
        while waiting:
            fn, depth = waiting.pop(0)
            below = self._scene.graph.find(fn)
            if below is None or self._looked_up >= _MOST_LEAVES:
                continue
            if below.variable is not None:
                self._looked_up += 1
                yield from self._scene.names.of(below.variable)[:1]
            elif depth < _LEAF_DEPTH and self._is_of_line(below, at):
                waiting += [(child, depth + 1) for child in below.children]

    def _is_of_line(self, node: GraphNode, at: LineId) -> bool:
        moment = self._scene.history.maker(node)
        return moment is None or moment.place.line_id == at

    def lines(self, writes: Sequence[TraceEvent]) -> tuple[GraphLine, ...]:
        """The lines in the order of time; the writes among them."""
        for write in writes:
            self._lines.setdefault(write.place.line_id, _Line(write.place, write.order))
        ordered = sorted(self._lines.items(), key=lambda item: item[1].order)
        at = {line_id: number for number, (line_id, _) in enumerate(ordered)}
        certainty = self._scene.history.certainty
        return tuple(
            _drawn(line, number, at, certainty) for number, (_, line) in enumerate(ordered)
        )


def _drawn(line: _Line, number: int, at: dict[LineId, int], certainty: Certainty) -> GraphLine:
    # What an iteration hands to the next one is no way down: the line stands once.
    inputs = tuple(sorted(at[i] for i in line.inputs if at[i] < number))
    # An operation may be done twice in one run of its line, where another stands only once.
    count = min(map(len, line.runs.values()), default=1)
    return GraphLine(line.place, inputs, tuple(line.leaves), count, certainty)


def _shortened(lines: tuple[GraphLine, ...]) -> tuple[GraphLine, ...]:
    """Of a long path the beginning and the end, and one line for what lies between."""
    if len(lines) <= MOST_LINES:
        return lines
    first = MOST_LINES // 2
    last = len(lines) - (MOST_LINES - first - 1)
    moved = {n: n if n < first else max(first, n - last + first + 1) for n in range(len(lines))}
    between = range(first, last)
    inputs = {moved[i] for n in between for i in lines[n].inputs if i < first}
    left_out = GraphLine(None, tuple(sorted(inputs)), (), len(between), lines[0].certainty)
    rest = (
        replace(line, inputs=tuple(sorted({moved[i] for i in line.inputs})))
        for line in lines[last:]
    )
    return (*lines[:first], left_out, *rest)
