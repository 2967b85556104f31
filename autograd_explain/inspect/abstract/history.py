"""A History concluded from the source that ran and the live objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...incident import Incident
from ...model import Certainty, Place
from ...program import Program
from ..history import Moment, SavedTensor

if TYPE_CHECKING:
    import torch

    from ..graph import Graph, GraphNode


class AbstractHistory:
    """Answers of `inspect.history.History`, inferred: nothing is run again."""

    certainty = Certainty.INFERRED

    def __init__(self, program: Program, incident: Incident, graph: Graph) -> None:
        self.program = program
        self.incident = incident
        self.graph = graph

    def maker(self, node: GraphNode) -> Moment | None:
        return None

    def creation(self, tensor: torch.Tensor) -> Moment | None:
        return None

    def writes(self, saved: SavedTensor) -> tuple[Moment, ...]:
        return ()

    def origin(self, expression: str, place: Place | None = None) -> tuple[Moment, ...]:
        return ()

    @property
    def steps(self) -> tuple[Moment, ...]:
        return ()
