"""A History concluded from the source that ran and the live objects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch

from ...incident import Incident
from ...model import Certainty, Place
from ...program import Program
from ..graph import Graph
from ..history import Moment, SavedTensor
from .budget import Limits, TooBig
from .failing import Arrival
from .match import Pairing
from .origin import evaluate, steps_behind
from .pairs import pair
from .trace import Step
from .walk import Walk
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
        self._makers: dict[tuple[GraphNode, ...], Step | None] = {}

    # -- the contract --------------------------------------------------------------------------

    def maker(self, node: GraphNode) -> Moment | None:
        """The moment whose operation created this graph node, or None where several fit."""
        candidates = self._candidates(node)
        if candidates not in self._makers:
            steps = [s for n in candidates if (s := self._owner(n)) is not None]
            self._makers[candidates] = _only(steps)
        step = self._makers[candidates]
        return None if step is None else step.moment

    def creation(self, tensor: torch.Tensor) -> Moment | None:
        """The moment that made this live tensor, or None."""
        step = self._walk.trace.birth(self._pairs.get(id(tensor)))
        if step is not None:
            return step.moment
        node = None if tensor.grad_fn is None else self.graph.find(tensor.grad_fn)
        return None if node is None else self.maker(node)

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
        if arrival is None or arrival.backward is None:
            return []
        slots = [s for s in arrival.backward.overwritten if _same_slot(s, saved)]
        nodes = {id(n.node) for n in self._candidates(saved.node)}
        return [s for s in slots if id(s.node.node) in nodes]

    # -- more than the contract ------------------------------------------------------------------

    @property
    def steps(self) -> tuple[Moment, ...]:
        """Every operation the walk saw, in order."""
        return tuple(step.moment for step in self._walk.trace.steps)

    def origin(
        self, what: str | torch.Tensor = "", place: Place | None = None
    ) -> tuple[Moment, ...]:
        """The operations behind a value, newest first.

        `what` is a live tensor, or a name, attribute or item as written at `place` (by default
        the failing line); "" means what the failing line worked on.
        """
        value = self._twin(what, place)
        arrival = self.arrival
        before = None if arrival is None else arrival.order
        return tuple(s.moment for s in steps_behind(self._walk.trace, value, before))

    def _twin(self, what: str | torch.Tensor, place: Place | None) -> Any:
        """The stand-in of a live tensor or of an expression."""
        if isinstance(what, torch.Tensor):
            return self._pairs.get(id(what))
        arrival = self.arrival
        if not what:
            return arrival.inputs[0] if arrival is not None and arrival.inputs else None
        place = place or self.incident.place
        frames = () if arrival is None else arrival.frames
        scopes = [v for name, v in frames if place is not None and name == place.function]
        return evaluate(what, {**self._walk.globals, **(scopes[0] if scopes else {})})

    # -- the walk ----------------------------------------------------------------------------------

    @cached_property
    def _walk(self) -> Walk:
        """The walk that gets to the failing line: as the program decides, else steered there."""
        walk = self._walked(big=_is_big(self.incident), steer=False)
        if walk.failure.arrivals or not self.incident.user_frames:
            return walk
        steered = self._walked(big=walk.devices.big, steer=True)
        return steered if steered.failure.arrivals else walk

    def _walked(self, *, big: bool, steer: bool) -> Walk:
        walk = Walk(self.program, self.incident, big=big, steer=steer)
        try:
            walk.run()
        except TooBig:
            return self._walked(big=True, steer=steer)
        return walk

    @property
    def arrival(self) -> Arrival | None:
        """Where the walk stood at the failing line for the last time."""
        arrivals = self._walk.failure.arrivals
        with_graph = [a for a in arrivals if a.backward is not None]
        return next(reversed(with_graph or arrivals), None)

    @cached_property
    def _pairs(self) -> dict[int, Any]:
        return pair(self._walk, self.incident)

    @cached_property
    def _pairing(self) -> Pairing | None:
        arrival = self.arrival
        if arrival is None or arrival.backward is None:
            return None
        leaves = {live: id(twin) for live, twin in self._pairs.items()}
        return Pairing(self.graph, arrival.backward.graph, leaves)

    def _candidates(self, node: GraphNode) -> tuple[GraphNode, ...]:
        return () if self._pairing is None else self._pairing.candidates(node)

    def _owner(self, node: GraphNode) -> Step | None:
        return self._walk.trace.owner(node.sequence)


def _is_big(incident: Incident) -> bool:
    """Whether the program holds so much that stand-ins with numbers would be a waste."""
    limit = Limits().elements
    for value in list(incident.namespace.values()):
        if isinstance(value, torch.Tensor) and value.numel() > limit:
            return True
        if isinstance(value, torch.nn.Module):
            sizes = [p.numel() for p in islice(_parameters(value), 500)]
            if sizes and (max(sizes) > limit or sum(sizes) > 5 * limit):
                return True
    return False


def _parameters(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """A live module's parameters without calling a method that the user may have overridden."""
    todo, seen = [module], set()
    while todo:
        state = vars(todo.pop())
        yield from (p for p in state.get("_parameters", {}).values() if p is not None)
        for child in state.get("_modules", {}).values():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                todo.append(child)


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
