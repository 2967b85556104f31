"""The failing line as the walk meets it."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from ...incident import Incident
from ..live.graph import Graph, SavedTensor
from .budget import FailureReached
from .event_log import ShadowLog, tensors_in, tracked
from .instrument import LIBRARY_TWIN, TWIN
from .site import Site, as_seen

_KEPT = 8  # arrivals; the last ones count


@dataclass(frozen=True, eq=False)
class Backward:
    """The graph of a backward that may be the failing one, looked at before it runs."""

    site: Site
    graph: Graph
    overwritten: tuple[SavedTensor, ...]


@dataclass(frozen=True, eq=False)
class Arrival:
    """The walk at the failing line.

    `inputs` is what the line works on, `frames` the locals of the twin's functions, innermost
    first, `backward` the backward call that failed or () outside of one.
    """

    order: int
    chain: tuple[Site, ...]
    op: str
    inputs: tuple[Any, ...]
    frames: tuple[tuple[str, dict[str, Any]], ...]
    backward: Backward | None


class FailurePoint:
    """Knows where the program failed, notes the walk there, and sees it fail the same way."""

    def __init__(self, trace: ShadowLog, stack: list[Site], incident: Incident) -> None:
        #: set when the run comes to the cell that failed
        self.in_failing_cell = False
        self.arrivals: list[Arrival] = []
        #: whether the walk failed as the program did
        self.reached = False
        self._trace = trace
        self._stack = stack
        self._frames = [(f.filename, f.line) for f in incident.user_frames]
        self._exception = incident.exception
        self._message = incident.message
        self._backward: Backward | None = None

    def arrive(self, site: Site, values: tuple[Any, ...], op: str = "", owner: Any = None) -> None:
        """Notes the walk's state where `site` may be what failed."""
        if not self.in_failing_cell or not self._frames:
            return
        backward = op in ("backward", "grad")
        if site.in_library and not backward:
            return  # the call of the library has arrived
        chain, seen = as_seen(self._stack, site)
        if seen is None:
            return
        if backward and self._is_on_the_way(seen):
            self._look(site, owner, values)
        if not self._is_at(chain, seen):
            return
        arrival = Arrival(
            len(self._trace.steps),
            (*chain, seen),
            op,
            tracked(values),
            _twin_frames(),
            self._current_backward(site),
        )
        if self.arrivals and self.arrivals[-1].chain[-1].shown is seen.shown:
            self.arrivals.pop()
        self.arrivals = [*self.arrivals[1 - _KEPT :], arrival]

    def is_here(self, site: Site) -> bool:
        """Whether the innermost of the user's frames stood at this site."""
        chain, seen = as_seen(self._stack, site)
        return seen is not None and self._is_at(chain, seen)

    def _is_at(self, chain: tuple[Site, ...], site: Site) -> bool:
        filename, line = self._frames[-1]
        if site.source.filename != filename or not site.covers(line):
            return False
        outer = chain[0] if chain else site
        return outer.source.filename != self._frames[0][0] or outer.covers(self._frames[0][1])

    def check(self, site: Site, error: Exception) -> None:
        """Ends the walk where an error is the program's own failure."""
        if not self.in_failing_cell or self._exception is None or not self._frames:
            return
        alike = type(error) is type(self._exception) and _head(str(error)) == _head(self._message)
        if alike and self.is_here(site):
            self.reached = True
            raise FailureReached from None

    def _is_on_the_way(self, site: Site) -> bool:
        return any(
            site.source.filename == filename and site.covers(line)
            for filename, line in self._frames
        )

    def _look(self, site: Site, owner: Any, values: tuple[Any, ...]) -> None:
        """Before torch frees it: the graph, and which of its saved values are overwritten."""
        found = [owner] if isinstance(owner, torch.Tensor) else tensors_in(values[:1], 2)
        traced = tuple(t for t in found if t.requires_grad and t.grad_fn is not None)
        roots: tuple[torch.Tensor | GradientEdge, ...] = (*traced, *_edges(values[:1]))
        self._backward = None
        if roots:
            graph = Graph(roots, limit=20_000, seconds=0.1)
            self._backward = Backward(site, graph, tuple(graph.overwritten()))

    def _current_backward(self, site: Site) -> Backward | None:
        """The backward that is running now; an earlier one went well."""
        found = self._backward
        if found is None or (found.site is not site and found.site not in self._stack):
            return None
        return found


def _twin_frames() -> tuple[tuple[str, dict[str, Any]], ...]:
    """The twin's function frames, innermost first, with copies of their locals."""
    found = []
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        own = code.co_filename.startswith(TWIN) and not code.co_filename.startswith(LIBRARY_TWIN)
        if own and code.co_name != "<module>":
            found.append((code.co_name, dict(frame.f_locals)))
        frame = frame.f_back
    return tuple(found)


def _edges(values: tuple[Any, ...]) -> tuple[GradientEdge, ...]:
    """Edges of the graph among what a backward is given."""
    each = [v for given in values for v in (given if type(given) in (list, tuple) else (given,))]
    return tuple(v for v in each if isinstance(v, GradientEdge))


def _head(text: str) -> str:
    """The part of a message before anything that names tensors."""
    return text[:48].partition("[")[0].strip()
