"""One walk compared with the live failure, and the choice of the walk that fits it best."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

import torch

from ...incident import Incident, LiveFrame
from ...isolation.type_checks import is_a
from ...program import Program
from ..history import TraceEvent
from ..live.graph import Graph, GraphNode, SavedTensor
from .arrival import Arrival
from .budget import RunLimits, TooBig
from .control_flow import BranchChoices
from .event_log import ShadowEvent
from .graph_alignment import Pairing
from .instrument import Twins
from .overwrites import statement, writes_past
from .run import ShadowRun
from .value_alignment import pair

_MORE_WALKS = 6
_OVERWRITTEN = "modified by an inplace operation"


class RunAlignment:
    """A walk and what it says about the live graph."""

    def __init__(
        self, walk: ShadowRun, incident: Incident, live: Graph, saved: SavedTensor | None
    ) -> None:
        self.walk = walk
        self._incident = incident
        self._live = live
        self._saved = saved

    @cached_property
    def arrival(self) -> Arrival | None:
        """Where the walk stood at the failing line for the last time."""
        arrivals = self.walk.failure.arrivals
        with_graph = [a for a in arrivals if a.backward is not None]
        return next(reversed(with_graph or arrivals), None)

    @cached_property
    def pairs(self) -> dict[int, Any]:
        """ids of live tensors -> their stand-ins."""
        return pair(self.walk, self._incident)

    @cached_property
    def _pairing(self) -> Pairing | None:
        if self._twin is None:
            return None
        leaves = {live: id(twin) for live, twin in self.pairs.items()}
        return Pairing(self._live, self._twin[0], leaves)

    @cached_property
    def _twin(self) -> tuple[Graph, tuple[SavedTensor, ...]] | None:
        """The stand-ins' graph, and which of its saved values are overwritten.

        Where nothing has failed it is that of the stand-ins that have the live roots' names.
        """
        if self.arrival is not None and self.arrival.backward is not None:
            return self.arrival.backward.graph, self.arrival.backward.overwritten
        if self._incident.user_frames or self._incident.exception is not None:
            return None
        twins = [t for root in self._live.roots if (t := self.pairs.get(id(root))) is not None]
        if not twins or len(twins) < len(self._live.roots):
            return None
        graph = Graph(twins)
        return graph, tuple(graph.overwritten())

    def candidates(self, node: GraphNode) -> tuple[GraphNode, ...]:
        """The stand-ins' nodes that may correspond to a live one."""
        return () if self._pairing is None else self._pairing.candidates(node)

    def makers(self, nodes: tuple[GraphNode, ...]) -> list[ShadowEvent]:
        """The steps that made some of the stand-ins' nodes."""
        owner = self.walk.trace.owner
        return [step for n in nodes if (step := owner(n.sequence)) is not None]

    def slots(self, saved: SavedTensor) -> list[SavedTensor]:
        """The overwritten slots of the stand-ins' graph that may correspond to a live one.

        Where the node's own is not overwritten (a loop was cut short, a branch went the other
        way), those that the same statement made.
        """
        if self._twin is None:
            return []
        found = [s for s in self._twin[1] if _same_slot(s, saved)]
        nodes = self.candidates(saved.node)
        own = {id(n.node) for n in nodes}
        exact = [s for s in found if id(s.node.node) in own]
        if exact:
            return exact
        statements = {s.statement for s in self.makers(nodes)}
        if len(statements) != 1:
            return []
        return [s for s in found if statements >= {m.statement for m in self.makers((s.node,))}]

    @property
    def in_doubt(self) -> bool:
        """Whether a branch hung on numbers that may be others than the program's."""
        return bool(self.walk.undecided) and self.walk.made_up

    def writes(self, saved: SavedTensor) -> tuple[TraceEvent, ...]:
        """What wrote a saved value, oldest first; () where the stand-ins disagree."""
        trace = self.walk.trace
        found = [w for twin in self.slots(saved) if (w := writes_past(trace, twin, saved))]
        return found[0] if len({statement(w[0]) for w in found}) == 1 else ()

    @property
    def failed_alike(self) -> bool:
        """Whether the walk met the program's failure, if there was one."""
        return self.walk.failure.reached or self._incident.exception is None

    @cached_property
    def score(self) -> tuple[float, ...]:
        """How well the walk fits: it got there, failed alike, wrote it, made the same graph."""
        size = len(self._live.nodes)
        exact = 0 if self._pairing is None else len(self._pairing.exact)
        wrote = self._saved is None or bool(self.writes(self._saved))
        return (
            float(self.arrival is not None),
            self.failed_alike,
            wrote,
            exact / size if size else 1.0,
        )

    @property
    def fits(self) -> bool:
        return all(part == 1 for part in self.score)


def best_readings(program: Program, incident: Incident, live: Graph) -> tuple[RunAlignment, ...]:
    """The readings of the walks that fit best, equally well.

    The first walk takes every branch as its numbers say.  Where these numbers may be others than
    the program's, or do not lead to the live failure and graph, the branches that hang on them
    are taken otherwise, one at a time.
    """
    saved = next(live.overwritten(), None) if _OVERWRITTEN in incident.message else None
    twins = Twins(program)

    def read(arms: BranchChoices, big: bool, inside: bool) -> RunAlignment:
        walk = ShadowRun(program, incident, twins, arms=arms, big=big, libraries=inside)
        try:
            walk.run()
        except TooBig:
            return read(arms, True, inside)
        return RunAlignment(walk, incident, live, saved)

    inside = True
    first = read({}, _is_big(incident), inside)
    if not first.fits and first.walk.libraries.entered:
        # What was not known inside a library led elsewhere: the user's own lines tell as much.
        plain = read({}, first.walk.devices.big, False)
        if plain.score >= first.score:
            inside, first = False, plain
    if not incident.user_frames or (first.fits and not first.in_doubt):
        return (first,)
    readings = [first]
    for arms in islice(_alternatives(program, incident, first), _MORE_WALKS):
        readings.append(read(arms, first.walk.devices.big, inside))
    best = max(r.score for r in readings)
    return tuple(r for r in readings if r.score == best)


def _alternatives(
    program: Program, incident: Incident, first: RunAlignment
) -> Iterator[BranchChoices]:
    """Other ways through the program: straight to the round of its loops in which it failed, to the
    failing line, then branch by branch."""
    to_failure = forced_arms(program, incident)
    rounds = {} if first.failed_alike else failing_rounds(program, incident)
    if rounds:  # what earlier rounds cost, or did otherwise, is left out
        yield {**to_failure, **rounds}
    if first.arrival is None and to_failure:
        yield to_failure
    for position, taken in list(first.walk.undecided.items())[::-1]:
        yield {**to_failure, position: not taken}
        yield {**to_failure, position: taken}


def forced_arms(program: Program, incident: Incident) -> BranchChoices:
    """Which arm each `if` around the failing lines took."""
    found: dict[tuple[str, int, int], bool] = {}
    for frame, node in _nodes(program, incident):
        if isinstance(node, ast.If):
            for arm, taken in ((node.body, True), (node.orelse, False)):
                if _holds(arm, frame):
                    found[frame.filename, node.lineno, node.col_offset] = taken
    return found


def failing_rounds(program: Program, incident: Incident) -> BranchChoices:
    """The `for` loops around the failing lines: of each the round it stood at is taken."""
    return {
        (frame.filename, node.lineno, node.col_offset): True
        for frame, node in _nodes(program, incident)
        if isinstance(node, ast.For) and _holds(node.body, frame)
    }


def _nodes(program: Program, incident: Incident) -> Iterator[tuple[LiveFrame, ast.AST]]:
    for frame in incident.user_frames:
        source = program.source_of(frame.code)
        yield from () if source is None else ((frame, node) for node in source.nodes)


def _holds(block: list[ast.stmt], frame: LiveFrame) -> bool:
    return bool(block) and block[0].lineno <= frame.line <= (block[-1].end_lineno or 0)


def _is_big(incident: Incident) -> bool:
    """Whether the program holds so much that stand-ins with numbers would be a waste."""
    limit = RunLimits().elements
    for value in list(incident.namespace.values()):
        if is_a(value, torch.Tensor) and value.numel() > limit:
            return True
        if is_a(value, torch.nn.Module):
            sizes = [p.numel() for p in islice(_parameters(value), 500)]
            if sizes and (max(sizes) > limit or sum(sizes) > 5 * limit):
                return True
    return False


def _parameters(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """A live module's parameters without calling a method that the user may have overridden."""
    todo, seen = [module], {id(module)}
    while todo:
        state: Mapping[str, Any] = vars(todo.pop())
        yield from (p for p in state.get("_parameters", {}).values() if p is not None)
        for child in state.get("_modules", {}).values():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                todo.append(child)


def _same_slot(twin: SavedTensor, live: SavedTensor) -> bool:
    return twin.name == live.name and twin.tensor.shape == live.tensor.shape
