"""Which steps wrote a saved value, from the stand-ins' version counters."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.autograd.graph import increment_version

from ..history import Moment, SavedTensor
from .trace import Step, Trace, Write, storage_of, version_of


def writes_past(trace: Trace, twin: SavedTensor, live: SavedTensor) -> tuple[Moment, ...]:
    """The writes that took a stand-in's saved value past its saved version, oldest first.

    Versions are given as the live counter counts them.
    """
    saved = twin.saved_version or 0
    shift = (live.saved_version or 0) - saved
    found: dict[int, Write] = {}
    for write in sharing(trace.writes, twin.tensor):
        if write.after > saved:
            # A step may move a counter several times: what counts is where it left it.
            found[write.step.order] = write
    moments = []
    for write in sorted(found.values(), key=lambda w: w.step.order):
        version: int | None = write.after + shift
        if version is not None and version > live.current_version:
            version = None
        via = tuple(s.moment for s in aliases(trace, write.tensor, twin.tensor))
        moments.append(write.step.as_moment(version, via, write.name))
    return tuple(moments)


def sharing(writes: Sequence[Write], tensor: torch.Tensor) -> list[Write]:
    """The writes that moved this tensor's version counter.

    Views and `.detach()` share a counter, `.data` does not; moving it once more tells which.
    Stand-ins only: nobody else looks at their versions.
    """
    storage = storage_of(tensor)
    found: list[Write] = []
    for write in writes:
        if storage_of(write.tensor) != storage:
            continue
        before = version_of(tensor)
        if write.tensor is not tensor:
            increment_version(write.tensor)
        if write.tensor is tensor or version_of(tensor) != before:
            found.append(write)
    return found


def aliases(trace: Trace, written: torch.Tensor, saved: torch.Tensor) -> list[Step]:
    """The steps that made `written` another name for memory, outermost alias last."""
    found: list[Step] = []
    step = trace.birth(written)
    while step is not None and len(found) < 8:
        source = next(
            (
                t for t in step.inputs
                if isinstance(t, torch.Tensor) and t is not written
                and storage_of(t) == storage_of(written)
            ),
            None,
        )  # fmt: skip
        if source is None or step.writes:
            break
        found.insert(0, step)
        written = source
        step = trace.birth(written)
    return found


def statement(moment: Moment) -> tuple[object, ...]:
    """What makes two moments the same statement for the user."""
    place = moment.place
    return place.cell, place.file, place.line, moment.op
