"""The Scene: the only holder of live tensors, and the one thing a `diagnose` looks at.

Everything is computed when first asked for and dropped with the Scene.  Nothing here runs the
user's code again, changes a tensor, or keeps one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from itertools import takewhile
from typing import TypeVar

import torch

from ..incident import Incident
from ..match import Match
from ..model import Certainty, Event, Finding, Place, Relation, Role, TensorFact, What
from ..program import Program
from ..program_index import ProgramIndex, index_of
from .dataflow import ExprAt, GradientTracer, Slicer, failing_spots
from .history import History, TraceEvent
from .live.graph import Graph, GraphNode, SavedTensor
from .live.names import Names
from .live.roots import roots_of
from .live.shapes import shape_of
from .shadow import InferredHistory

_LONGEST_CHAIN = 10  #: calls around an expression that an event tells
D = TypeVar("D")


class Scene:
    """A failure with everything that can be known about it.

    `incident`, `match` and `program` are given; the rest is looked up lazily.
    """

    def __init__(self, incident: Incident, match: Match) -> None:
        self.incident = incident
        self.match = match
        self.program: Program = incident.program

    @cached_property
    def roots(self) -> tuple[torch.Tensor, ...]:
        """The tensors whose backward (or grad) call failed; () outside a backward."""
        found = roots_of(self.incident.frames)
        return tuple(r for r in found if isinstance(r, torch.Tensor))

    @cached_property
    def graph(self) -> Graph:
        return Graph(tuple(roots_of(self.incident.frames)))

    @cached_property
    def history(self) -> History:
        """What happened before: the recording in check mode, else what the source tells."""
        recording = self.incident.recording
        if recording is not None and recording.covers(self.incident):
            return recording.history(self.program)
        return self.inferred

    @cached_property
    def inferred(self) -> InferredHistory:
        """What the source tells of the past, under watch too."""
        return InferredHistory(self.program, self.incident, self.graph)

    @property
    def index(self) -> ProgramIndex:
        """What the program's text says: calls, definitions, assignments."""
        return index_of(self.program)

    @cached_property
    def names(self) -> Names:
        own = self.incident.user_frames
        between = [frame for frame in self.incident.frames if frame not in own]
        return Names(self.incident.namespace, own, between)

    @cached_property
    def slicer(self) -> Slicer:
        """Follows values back through the source; what it has parsed is kept with the scene."""
        return Slicer(self.program, self.incident)

    @cached_property
    def gradient_tracer(self) -> GradientTracer:
        """Follows gradients; prefers what the user's optimizers update."""
        held = [
            parameter
            for _, optimizer in self.names.optimizers()
            for group in optimizer.param_groups
            for parameter in group["params"]
        ]
        return GradientTracer(self.slicer, held)

    @property
    def certainty(self) -> Certainty:
        return self.history.certainty

    @property
    def place(self) -> Place | None:
        """The innermost user line at which the failure surfaced."""
        return self.incident.place

    @cached_property
    def surfaced(self) -> ExprAt | None:
        """The expression that the innermost of the user's frames was evaluating."""
        return next(iter(failing_spots(self.slicer)), None)

    @cached_property
    def path(self) -> tuple[Place, ...]:
        """The user's lines from the outermost to the one at which the failure surfaced."""
        places = (self.incident.place_of(f) for f in self.incident.user_frames)
        return tuple(p for p in places if p is not None)

    def makers(self, nodes: Iterable[GraphNode]) -> tuple[TraceEvent, ...]:
        """What made each of these nodes, as far as it is known, oldest first."""
        made = (self.history.maker(n) for n in nodes)
        return tuple(sorted((m for m in made if m is not None), key=lambda m: m.order))

    def fact(
        self, role: Role, tensor: torch.Tensor, *extra: str, saved: SavedTensor | None = None
    ) -> TensorFact:
        """A tensor's data for the report; `extra` are names known from the source.

        What was saved may be a view of what the first name stands for (a transposed weight): shape
        and graph are then those of the named tensor, versions are shared by both.  Of a saved value
        that no live name leads to, only its memory is known, and its shape where it is no view.
        """
        named = self.names.first(tensor)
        names = tuple(dict.fromkeys(n for n in (*self.names.of(tensor), *extra) if n))
        alias = named is None and saved is not None
        tensor = tensor if named is None else named.tensor
        # `.grad_fn` of a view may regenerate its history: harmless only after the failure.
        grad_fn = None if alias else tensor.grad_fn
        version = _version(tensor) if saved is None else saved.current_version
        return TensorFact(
            role=role,
            names=names,
            shape=None if alias and tensor._is_view() else shape_of(tensor),
            dtype=str(tensor.dtype).removeprefix("torch."),
            device=str(tensor.device),
            is_leaf=None if alias else tensor.is_leaf,
            requires_grad=None if alias else tensor.requires_grad,
            grad_fn=None if grad_fn is None else grad_fn.name(),
            saved_version=None if saved is None else saved.saved_version,
            current_version=version,
        )

    def event(
        self,
        what: What,
        moment: TraceEvent | None,
        *,
        op: str | None = None,
        version: int | None = None,
        certainty: Certainty | None = None,
        relation: Relation | None = None,
    ) -> Event | None:
        """A moment of the history as an event of the report; what is not given is the moment's."""
        if moment is None:
            return None
        return Event(
            what,
            moment.place,
            op=moment.op if op is None else op,
            version=moment.version if version is None else version,
            certainty=self.history.certainty if certainty is None else certainty,
            chain=moment.chain,
            relation=relation,
            inside=moment.inside,
        )

    def event_at(
        self, what: What, spot: ExprAt, op: str | None = None, relation: Relation | None = None
    ) -> Event:
        """An event at an expression; it was concluded from the source."""
        chain: list[Place] = []
        call = spot.scope.call
        while call is not None and len(chain) < _LONGEST_CHAIN:
            chain.append(self.slicer.place(call))
            call = call.scope.call
        place = self.slicer.place(spot)
        return Event(what, place, op, chain=tuple(reversed(chain)), relation=relation)

    def with_calls(self, finding: Finding[D]) -> Finding[D]:
        """The finding with the calls that led to its lines in files beside the notebook, too."""
        events = tuple(
            e if e.chain or e.place is None else replace(e, chain=self._calls_to(e.place))
            for e in finding.events
        )
        return replace(finding, events=events)

    def _calls_to(self, place: Place) -> tuple[Place, ...]:
        """The calls that all ways to the function of a line in a file have in common."""
        source = self.program.source_at(place) if place.file and self.program.is_notebook else None
        function = None if source is None else source.function_at(place)
        if function is None:
            return ()
        lines = range(function.lineno, (function.end_lineno or 0) + 1)
        ways: list[tuple[Place, ...]] = []
        for step in self.inferred.steps:
            inside = [p.file == place.file and p.line in lines for p in step.path]
            ways += [step.path[: inside.index(True)]] if any(inside) else []
        levels = zip(*(way[::-1] for way in ways), strict=False)
        common = takewhile(lambda places: len({p.line_id for p in places}) == 1, levels)
        return tuple(places[0] for places in common)[:_LONGEST_CHAIN][::-1]

    def place_at(self, spot: ExprAt | None) -> Place | None:
        """The place of an expression."""
        return None if spot is None else self.slicer.place(spot)

    def places_at(self, spots: Iterable[ExprAt]) -> tuple[Place, ...]:
        """The places of expressions, for what a cause's rewrites need."""
        return tuple(self.slicer.place(s) for s in spots)

    def failed(self) -> Event:
        """The event of the line at which torch raised: that one was always observed."""
        return Event(What.FAILED, self.place, certainty=Certainty.OBSERVED)


def _version(tensor: torch.Tensor) -> int | None:
    try:
        return tensor._version
    except RuntimeError:  # inference tensors have no version counter
        return None
