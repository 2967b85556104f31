"""The Scene: the only holder of live tensors, and the one thing a `diagnose` looks at.

Everything is computed when first asked for and dropped with the Scene.  Nothing here runs the
user's code again, changes a tensor, or keeps one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import torch

from ..incident import Incident, LiveFrame
from ..match import Match
from ..model import Certainty, Event, Place, Role, TensorFact, What
from ..program import Program
from .abstract import AbstractHistory
from .graph import Graph
from .history import History, Moment, SavedTensor
from .names import Names


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
        return tuple(_roots(self.incident.frames))

    @cached_property
    def graph(self) -> Graph:
        return Graph(self.roots)

    @cached_property
    def history(self) -> History:
        """What happened before: the recording in check mode, else what the source tells."""
        recording = self.incident.recording
        if recording is not None and recording.covers(self.incident):
            return recording.history(self.program)
        return AbstractHistory(self.program, self.incident, self.graph)

    @cached_property
    def names(self) -> Names:
        return Names(self.incident.namespace, self.incident.user_frames)

    @property
    def certainty(self) -> Certainty:
        return self.history.certainty

    @property
    def place(self) -> Place | None:
        """The innermost user line at which the failure surfaced."""
        return self.incident.place

    def fact(
        self, role: Role, tensor: torch.Tensor, *extra: str, saved: SavedTensor | None = None
    ) -> TensorFact:
        """A tensor's data for the report; `extra` are names known from the source."""
        names = tuple(dict.fromkeys(n for n in (*self.names.of(tensor), *extra) if n))
        # `.grad_fn` of a view may regenerate its history: harmless only after the failure.
        grad_fn = tensor.grad_fn
        return TensorFact(
            role=role,
            names=names,
            shape=tuple(tensor.shape),
            dtype=str(tensor.dtype).removeprefix("torch."),
            device=str(tensor.device),
            is_leaf=tensor.is_leaf,
            requires_grad=tensor.requires_grad,
            grad_fn=None if grad_fn is None else grad_fn.name(),
            saved_version=None if saved is None else saved.saved_version,
            current_version=_version(tensor) if saved is None else saved.current_version,
        )

    def event(self, what: What, moment: Moment | None, **changes: Any) -> Event | None:
        """A moment of the history as an event of the report."""
        if moment is None:
            return None
        values = {
            "place": moment.place,
            "op": moment.op,
            "version": moment.version,
            "certainty": self.history.certainty,
            "chain": moment.chain,
        }
        return Event(what, **{**values, **changes})

    def failed(self) -> Event:
        """The event of the line at which torch raised: that one was always observed."""
        return Event(What.FAILED, self.place, certainty=Certainty.OBSERVED)


def _roots(frames: tuple[LiveFrame, ...]) -> Iterator[torch.Tensor]:
    """Roots are locals of torch's own frames: `self` in Tensor.backward, `tensors` in
    torch.autograd.backward, `outputs` in torch.autograd.grad (torch/autograd/__init__.py)."""
    for live in reversed(frames):
        where = live.filename.replace("\\", "/")
        values: Mapping[str, Any] = live.frame.f_locals
        if where.endswith("torch/autograd/__init__.py"):
            found = values.get("tensors", values.get("outputs"))
        elif where.endswith("torch/_tensor.py") and live.function == "backward":
            found = values.get("self")
        else:
            continue
        if isinstance(found, torch.Tensor):
            found = (found,)
        if found is not None:
            yield from (t for t in found if isinstance(t, torch.Tensor))
            return


def _version(tensor: torch.Tensor) -> int | None:
    try:
        return tensor._version
    except RuntimeError:  # inference tensors have no version counter
        return None
