"""What kept the operations of a silent cut out of the graph: a block or a decorator."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from autograd_explain.inspect.dataflow.grad_mode import Off, OffBy, switched_off_around
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Event, Place, What


@dataclass(frozen=True)
class RecordingOff:
    """`place` is the block or the decorator; `inside` the lines in a block's function under which
    the operations ran."""

    by: OffBy
    place: Place
    inside: tuple[Place, ...]


def recording_off(scene: Scene, cuts: list[TraceEvent]) -> RecordingOff | None:
    """The one switch around all of the operations, in their own function or in one that called it;
    None where they ran under several."""
    found = [_around(scene, cut) for cut in cuts]
    known = [pair for pair in found if pair is not None]
    if len(known) != len(cuts) or len({id(off.node) for off, _ in known}) != 1:
        return None
    off = known[0][0]
    return RecordingOff(
        off.by, scene.slicer.place_of(off.scope, off.node), tuple(place for _, place in known)
    )


def as_events(causes: list[Event | None], off: RecordingOff | None) -> list[Event | None]:
    """Where a switch kept operations from being recorded, that is what to change."""
    return causes if off is None else behind(Event(What.CAUSE, off.place), causes)


def behind(cause: Event, ran: list[Event | None]) -> list[Event | None]:
    """What to change, and what ran because of it."""
    return [cause, *(None if e is None else replace(e, what=What.DETACHED) for e in ran)]


def _around(scene: Scene, cut: TraceEvent) -> tuple[Off, Place] | None:
    for place in reversed(cut.path):
        source = scene.program.source_at(place)
        line = place.line - (0 if source is None else source.offset)
        here = (
            node
            for node in (() if source is None else source.nodes)
            if isinstance(node, ast.expr) and node.lineno <= line <= (node.end_lineno or 0)
        )
        node = next(here, None)
        if source is None or node is None:
            return None
        off = switched_off_around(scene.slicer, scene.slicer.at(source, node))
        if off is not None:
            return off, place
    return None
