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
from .guard import undisturbed
from .match import Pairing
from .pairs import pair
from .trace import Step
from .walk import Arrival, TooBig, Walk
from .writes import writes_past

if TYPE_CHECKING:
    from ..graph import GraphNode


class AbstractHistory:
    """Answers of `inspect.history.History`, inferred: nothing of the user's is run again.

    Besides the contract: `steps` are all operations in order, and `origin` follows a value back
    to the operations it came from.
    """

    certainty = Certainty.INFERRED

    def __init__(self, program: Program, incident: Incident, graph: Graph) -> None:
        self.program = program
        self.incident = incident
        self.graph = graph

    # -- the contract --------------------------------------------------------------------------

    def maker(self, node: GraphNode) -> Moment | None:
        """The moment whose operation created this graph node, or None where several fit."""
        step = _only([s for n in self._candidates(node) if (s := self._owner(n)) is not None])
        return None if step is None else step.moment

    def creation(self, tensor: torch.Tensor) -> Moment | None:
        """The moment that made this live tensor, or None."""
        step = self._birth(tensor)
        return None if step is None else step.moment

    def writes(self, saved: SavedTensor) -> tuple[Moment, ...]:
        """The in-place writes that took the saved tensor past its saved version, oldest first."""
        answers = [
            found
            for twin in self._saved_twins(saved)
            if (found := writes_past(self._walk.trace, twin, saved))
        ]
        if len({_statement(a[0]) for a in answers}) != 1:
            return ()
        return answers[0]

    def _saved_twins(self, saved: SavedTensor) -> list[SavedTensor]:
        """The overwritten slots of the stand-ins' graph that may correspond to a live one."""
        arrival = self.arrival
        if arrival is None:
            return []
        slots = [s for s in arrival.overwritten if _same_slot(s, saved)]
        nodes = {id(n.node) for n in self._candidates(saved.node)}
        return [s for s in slots if id(s.node.node) in nodes]

    # -- more than the contract ------------------------------------------------------------------

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every operation the walk saw, in order."""
        return tuple(self._walk.trace.steps)

    # -- the walk ----------------------------------------------------------------------------------

    @cached_property
    def _walk(self) -> Walk:
        for steer in (False, True):
            walk = Walk(self.program, self.incident, steer=steer)
            try:
                with undisturbed():
                    walk.run()
            except TooBig:
                break
            if walk.arrivals:
                break
        return walk

    @property
    def arrival(self) -> Arrival | None:
        """Where the walk stood at the failing line for the last time."""
        arrivals = self._walk.arrivals
        return arrivals[-1] if arrivals else None

    @cached_property
    def _pairs(self) -> dict[int, Any]:
        return pair(self._walk, self.incident)

    @cached_property
    def _pairing(self) -> Pairing | None:
        arrival = self.arrival
        if arrival is None or arrival.graph is None:
            return None
        leaves = {live: id(twin) for live, twin in self._pairs.items()}
        return Pairing(self.graph, arrival.graph, leaves)

    def _candidates(self, node: GraphNode) -> tuple[GraphNode, ...]:
        return () if self._pairing is None else self._pairing.candidates(node)

    def _owner(self, node: GraphNode) -> Step | None:
        return self._walk.trace.owner(node.sequence)

    def _birth(self, tensor: torch.Tensor) -> Step | None:
        twin = self._pairs.get(id(tensor))
        return None if twin is None else self._walk.trace.birth(twin)


def _same_slot(twin: SavedTensor, live: SavedTensor) -> bool:
    return twin.name == live.name and twin.tensor.shape == live.tensor.shape


def _statement(moment: Moment) -> tuple[Any, ...]:
    place = moment.place
    return place.cell, place.file, place.line, moment.op


def _only(steps: list[Step]) -> Step | None:
    """The one statement that all steps are, by its last step; None where they differ."""
    if len({s.statement for s in steps}) != 1:
        return None
    return max(steps, key=lambda s: s.order)
