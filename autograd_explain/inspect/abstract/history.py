"""A History concluded from the source that ran and the live objects."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from ...incident import Incident
from ...model import Certainty, Place
from ...program import Program
from ..graph import Graph
from ..history import Moment, SavedTensor
from .origin import evaluate, steps_behind
from .reading import Reading, best_readings
from .trace import Step
from .writes import statement

if TYPE_CHECKING:
    from ..graph import GraphNode


class AbstractHistory:
    """Answers of `inspect.history.History`, inferred: nothing of the user's is run again.

    Besides the contract, `origin` follows a value back to the operations it came from.
    """

    certainty = Certainty.INFERRED

    def __init__(self, program: Program, incident: Incident, graph: Graph) -> None:
        self.program = program
        self.incident = incident
        self.graph = graph
        self._makers: dict[tuple[tuple[GraphNode, ...], ...], Step | None] = {}
        self._asked: dict[GraphNode, Moment | None] = {}

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        """The walks over the program that fit the failure best; answers must agree."""
        return best_readings(self.program, self.incident, self.graph)

    @property
    def reading(self) -> Reading:
        return self.readings[0]

    @property
    def steps(self) -> tuple[Moment, ...]:
        """What the program did up to the failing line, oldest first."""
        return tuple(step.moment for step in self.reading.walk.trace.steps)

    def maker(self, node: GraphNode) -> Moment | None:
        """The moment whose operation created this graph node, or None where several fit."""
        if node not in self._asked:
            self._asked[node] = self._maker(node)
        return self._asked[node]

    def _maker(self, node: GraphNode) -> Moment | None:
        candidates = tuple(r.candidates(node) for r in self.readings)
        if candidates not in self._makers:
            pairs = zip(self.readings, candidates, strict=True)
            found = [s for r, nodes in pairs for s in r.makers(nodes)]
            self._makers[candidates] = _only(found, self.reading)
        step = self._makers[candidates]
        return None if step is None else step.moment

    def creation(self, tensor: torch.Tensor) -> Moment | None:
        """The moment that made this live tensor, or None."""
        step = self.reading.walk.trace.birth(self.reading.pairs.get(id(tensor)))
        if step is not None:
            return step.moment
        node = None if tensor.grad_fn is None else self.graph.find(tensor.grad_fn)
        return None if node is None else self.maker(node)

    def writes(self, saved: SavedTensor) -> tuple[Moment, ...]:
        """The in-place writes that took the saved tensor past its saved version, oldest first."""
        answers = [found for r in self.readings if (found := r.writes(saved))]
        return answers[0] if len({statement(a[0]) for a in answers}) == 1 else ()

    def origin(
        self, what: str | torch.Tensor = "", place: Place | None = None
    ) -> tuple[Moment, ...]:
        """The operations behind a value, newest first.

        `what` is a live tensor, or a name, attribute or item as written at `place` (by default
        the failing line); "" means what the failing line worked on.
        """
        value = self._twin(what, place)
        arrival = self.reading.arrival
        before = None if arrival is None else arrival.order
        return tuple(s.moment for s in steps_behind(self.reading.walk.trace, value, before))

    def _twin(self, what: str | torch.Tensor, place: Place | None) -> Any:
        """The stand-in of a live tensor or of an expression."""
        if isinstance(what, torch.Tensor):
            return self.reading.pairs.get(id(what))
        arrival = self.reading.arrival
        if not what:
            return arrival.inputs[0] if arrival is not None and arrival.inputs else None
        place = place or self.incident.place
        frames = () if arrival is None else arrival.frames
        scopes = [v for name, v in frames if place is not None and name == place.function]
        return evaluate(what, {**self.reading.walk.globals, **(scopes[0] if scopes else {})})


def _only(steps: list[Step], reading: Reading) -> Step | None:
    """The one statement that all steps are, by its last step; None where they differ."""
    if len({s.statement for s in steps}) != 1:
        return None
    own = [s for s in steps if s in reading.walk.trace]
    return max(own or steps, key=lambda s: s.order)
