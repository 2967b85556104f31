"""A number that was taken from a tensor, or a sample that was drawn: nothing but another run tells
whether a loss depends on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..program import Program
    from ..record.signal import Signal
    from ..verification import SeveredValue

_WAYS = ("number", "copy", "sample", "numpy", "detach", "data")


def is_number_cut(signal: Signal) -> bool:
    return signal.name == "graph-cut" and signal.evidence.get("way") in _WAYS


def is_lost(signal: Signal, found: Iterable[SeveredValue], program: Program) -> bool:
    """Whether a run of the cell has shown that a loss depends on what left at the signal's line,
    and that its gradient reaches nothing of what that was computed of."""
    lines = {cut.place.line_id for cut in signal.moments.get("cut", ())}
    places = (program.place(v.place[0].filename, v.place[0].line) for v in found if v.lost)
    return any(place is not None and place.line_id in lines for place in places)


def in_the_loss(signal: Signal) -> Signal:
    """The signal as one that the last backward has shown."""
    moments = dict(signal.moments)
    if "last_backward" in moments:
        moments["backward"] = moments.pop("last_backward")
    return replace(signal, moments=moments)
