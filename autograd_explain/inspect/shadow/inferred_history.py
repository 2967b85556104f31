"""A History concluded from the source that ran and the live objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from ...incident import Incident
from ...model import Certainty, Place
from ...program import Program
from ..history import TraceEvent
from ..live.graph import Graph, SavedTensor
from ..live.names import shares_memory
from .event_log import ShadowEvent
from .overwrites import statement
from .run_alignment import RunAlignment, best_readings

if TYPE_CHECKING:
    from ..live.graph import GraphNode


_LONGEST = 2_000  #: steps from a value back to what it came from


@dataclass(frozen=True)
class Lost:
    """The operation at which a value lost its graph, and the last one on the way from there to
    where it was missed that the user wrote."""

    end: TraceEvent
    own: TraceEvent | None


class InferredHistory:
    """Answers of `inspect.history.History`, inferred: nothing of the user's is run again."""

    certainty = Certainty.INFERRED

    def __init__(self, program: Program, incident: Incident, graph: Graph) -> None:
        self.program = program
        self.incident = incident
        self.graph = graph
        self._makers: dict[tuple[tuple[GraphNode, ...], ...], ShadowEvent | None] = {}
        self._asked: dict[GraphNode, TraceEvent | None] = {}

    @cached_property
    def readings(self) -> tuple[RunAlignment, ...]:
        """The walks over the program that fit the failure best; answers must agree."""
        return best_readings(self.program, self.incident, self.graph)

    @property
    def reading(self) -> RunAlignment:
        return self.readings[0]

    @property
    def steps(self) -> tuple[TraceEvent, ...]:
        """What the program did up to the failing line, oldest first."""
        walk, arrival = self.reading.walk, self.reading.arrival
        failed = self.incident.exception is not None and not walk.failure.reached
        end = arrival.order if failed and arrival is not None else None  # it went on from there
        return tuple(step.moment for step in walk.trace.steps[:end])

    @cached_property
    def lost(self) -> Lost | None:
        """Where what failed to go backward had lost its graph, as far as the run got there."""
        arrival, trace = self.reading.arrival, self.reading.walk.trace
        roots = () if arrival is None else arrival.inputs[:1]
        if any(isinstance(r, torch.Tensor) and r.requires_grad for r in roots):
            return None
        todo, way, ends = [*roots], dict[int, ShadowEvent](), list[ShadowEvent]()
        while todo and len(way) < _LONGEST:
            step = trace.birth(todo.pop())
            if step is not None and step.order not in way:
                way[step.order] = step
                if step.ends_graph:
                    ends.append(step)
                else:
                    todo += step.inputs
        if not ends:
            return None
        end = max(ends, key=lambda s: s.order)
        own = [s for s in way.values() if s.inside is None and s.order >= end.order]
        last = max(own, key=lambda s: s.order, default=None)
        return Lost(end.moment, None if last is None else last.moment)

    def maker(self, node: GraphNode) -> TraceEvent | None:
        """The moment whose operation created this graph node, or None where several fit."""
        if node not in self._asked:
            self._asked[node] = self._maker(node)
        return self._asked[node]

    def _maker(self, node: GraphNode) -> TraceEvent | None:
        candidates = tuple(r.candidates(node) for r in self.readings)
        if candidates not in self._makers:
            pairs = zip(self.readings, candidates, strict=True)
            found = [s for r, nodes in pairs for s in r.makers(nodes)]
            self._makers[candidates] = _only(found, self.reading)
        step = self._makers[candidates]
        return None if step is None else step.moment

    def creation(self, tensor: torch.Tensor) -> TraceEvent | None:
        """The moment that made this live tensor, or None."""
        step = self.reading.walk.trace.birth(self.reading.pairs.get(id(tensor)))
        if step is not None:
            return step.moment
        node = None if tensor.grad_fn is None else self.graph.find(tensor.grad_fn)
        return None if node is None else self.maker(node)

    def same_counter(self, one: torch.Tensor, other: torch.Tensor) -> bool | None:
        """Whether two tensors that share memory share their version counter, or None: tried out on
        the stand-ins, which nobody else has."""
        first, second = (self.reading.pairs.get(id(tensor)) for tensor in (one, other))
        if first is None or second is None or not shares_memory(first, second):
            return None
        if shares_memory(first, one):  # no stand-in: not ours to touch
            return None
        before = second._version
        torch.autograd.graph.increment_version(first)
        return bool(second._version != before)

    def tuples(self, places: Iterable[Place]) -> dict[str, int]:
        """The tuples that some lines take an element out of, as they call them, with their
        lengths."""
        lines = {place.line_id for place in places}
        found = self.reading.walk.tuples.items()
        return {s.operand_texts[0]: n for s, n in found if s.place.line_id in lines}

    def writes(self, saved: SavedTensor) -> tuple[TraceEvent, ...]:
        """The in-place writes that took the saved tensor past its saved version, oldest first."""
        answers = [found for r in self.readings if (found := r.writes(saved))]
        return answers[0] if len({statement(a[0]) for a in answers}) == 1 else ()


def _only(steps: list[ShadowEvent], reading: RunAlignment) -> ShadowEvent | None:
    """The one statement that all steps are, by its last step; None where they differ."""
    if len({s.statement for s in steps}) != 1:
        return None
    own = [s for s in steps if s in reading.walk.trace]
    return max(own or steps, key=lambda s: s.order)
