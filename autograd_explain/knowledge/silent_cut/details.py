"""What the diagnoses of cut graphs share."""

from __future__ import annotations

from dataclasses import dataclass

from autograd_explain.inspect.history import TraceEvent
from autograd_explain.model import Place

from .recording_off import RecordingOff


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    repairable: bool
    derivative: bool = False  #: torch.autograd.grad gave it
    off: RecordingOff | None = None
    drawn: Place | None = None  #: where a distribution draws a sample


def widest(cuts: list[TraceEvent]) -> TraceEvent:
    """Of the calls in the first cut's line (`h.detach().numpy()`) the outermost."""
    first = cuts[0].place
    same = [c for c in cuts if (c.place.cell, c.place.line) == (first.cell, first.line)]
    return max(same, key=lambda c: 0 if c.place.span is None else c.place.span.end_column)
