"""Which steps wrote a saved value, from the stand-ins' version counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.autograd.graph import increment_version

from ..history import TraceEvent
from ..live.graph import SavedTensor
from .event_log import ShadowEvent, ShadowLog, ShadowWrite, storage_of, tensors_in, version_of

_MANY = 8


def writes_past(trace: ShadowLog, twin: SavedTensor, live: SavedTensor) -> tuple[TraceEvent, ...]:
    """The writes that took a stand-in's saved value past its saved version, oldest first.

    Versions are given as the live counter counts them.
    """
    saved = twin.saved_version or 0
    shift = (live.saved_version or 0) - saved
    found: dict[int, ShadowWrite] = {}
    for write in sharing(trace.writes, twin.tensor):
        if write.after > saved:
            # A step may move a counter several times: what counts is where it left it.
            found[write.step.order] = write
    moments = []
    for write in sorted(found.values(), key=lambda w: w.step.order):
        version: int | None = write.after + shift
        if version is not None and version > live.current_version:
            version = None
        via = tuple(s.moment for s in aliases(trace, write.tensor, twin))
        moments.append(write.step.as_moment(version, via, write.name))
    return tuple(moments)


def sharing(writes: Sequence[ShadowWrite], tensor: torch.Tensor) -> list[ShadowWrite]:
    """The writes that moved this tensor's version counter.

    Views and `.detach()` share a counter, `.data` does not; moving it once more tells which.
    Stand-ins only: nobody else looks at their versions.
    """
    storage = storage_of(tensor)
    found: list[ShadowWrite] = []
    for write in writes:
        if storage_of(write.tensor) != storage:
            continue
        before = version_of(tensor)
        if write.tensor is not tensor:
            increment_version(write.tensor)
        if write.tensor is tensor or version_of(tensor) != before:
            found.append(write)
    return found


def aliases(trace: ShadowLog, written: torch.Tensor, saved: SavedTensor) -> list[ShadowEvent]:
    """The steps that made `written` another name for the saved memory, outermost alias last.

    What made the saved tensor itself a view is no part of it.
    """
    known = {id(t) for given in _saved_as(trace, saved) for t, _ in _lineage(trace, given)}
    found: list[ShadowEvent] = []
    for tensor, step in _lineage(trace, written):
        if id(tensor) in known or step is None or len(found) == _MANY:
            break
        found.insert(0, step)
    return found


def _lineage(
    trace: ShadowLog, tensor: torch.Tensor
) -> Iterator[tuple[torch.Tensor, ShadowEvent | None]]:
    """A stand-in and what it is an alias of, up to the owner of the memory, each with the step
    that made it an alias (None for the owner)."""
    for _ in range(2 * _MANY):
        step = trace.birth(tensor)
        source = None if step is None or step.writes else _source(step, tensor)
        yield tensor, None if source is None else step
        if source is None:
            return
        tensor = source


def _source(step: ShadowEvent, made: torch.Tensor) -> torch.Tensor | None:
    given = (t for t in step.inputs if isinstance(t, torch.Tensor) and t is not made)
    return next((t for t in given if storage_of(t) == storage_of(made)), None)


def _saved_as(trace: ShadowLog, saved: SavedTensor) -> Iterator[torch.Tensor]:
    """The stand-ins that the saving step was given, or gave back, and that the slot holds.

    The slot's own tensor is a new object, and `h.detach()` looks the same as `h`.
    """
    step = trace.owner(saved.node.sequence)
    for tensor in () if step is None else tensors_in((*step.inputs, *step.outputs)):
        if storage_of(tensor) == storage_of(saved.tensor) and _same_part(tensor, saved.tensor):
            yield tensor


def _same_part(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.storage_offset() == b.storage_offset() and a.shape == b.shape


def statement(moment: TraceEvent) -> tuple[object, ...]:
    """What makes two moments the same statement for the user."""
    return moment.place.line_id, moment.op
