"""What the diagnoses of cut graphs share."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from autograd_explain.inspect.facts.binding import binding_of
from autograd_explain.inspect.facts.losing_call import Undecorated, undecorated_call
from autograd_explain.inspect.facts.numbers_given import Kept
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place

from .recording_off import RecordingOff


@dataclass(frozen=True)
class Swapped:
    """A sum `passed + (value - passed).detach()`, in which the two are to change places, or
    `(value + (passed - value)).detach()`."""

    place: Place
    value: str
    passed: str
    whole: bool = False  #: stopped as a whole


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    repairable: bool
    derivative: bool = False  #: torch.autograd.grad gave it
    inside: bool = False  #: which a library has called
    off: RecordingOff | None = None
    drawn: Place | None = None  #: where a distribution draws a sample
    swapped: Swapped | None = None
    memory: Place | None = None  #: of what keeps the value for good
    options: tuple[tuple[Place, str], ...] = ()  #: by which objects of packages do
    anew: bool = False  #: it left in each round, not once before them
    undecorated: tuple[Undecorated, ...] = ()  #: calls of a library's decorated function
    kept: tuple[Kept, ...] = ()  #: what gave an object numbers alone
    twins: tuple[tuple[Place, str], ...] = ()  #: a library's calls, and what keeps the graph there
    switch: tuple[Place, str] | None = None  #: a statement, and the switch by which a library cuts
    copied_input: bool = False  #: it put numbers of what a derivative is taken by into parameters


def widest(cuts: list[TraceEvent]) -> TraceEvent:
    """Of the calls in the first cut's line (`h.detach().numpy()`) the outermost."""
    first = cuts[0].place
    same = [c for c in cuts if (c.place.cell, c.place.line) == (first.cell, first.line)]
    return max(same, key=lambda c: 0 if c.place.span is None else c.place.span.end_column)


def kept_as(scene: Scene, cut: TraceEvent) -> tuple[str, ...]:
    """What the program calls the value that left, or the object that a call was made on for it to
    keep the value (`metric.update(out, y)`).  Where a library computed it, a statement that gives
    several names is not asked which of them is it."""
    kept = binding_of(scene.program, replace(cut, inside=None))
    call = kept.statement.value if isinstance(kept.statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return (ast.unparse(call.func.value),)
    return kept.names if cut.inside is None or len(kept.names) == 1 else ()


def decorated(scene: Scene, cut: TraceEvent) -> tuple[Undecorated, ...]:
    """The call in which a library took the value out of the graph, where its decorator did."""
    source, node = scene.program.source_at(cut.place), scene.program.expression_at(cut.place)
    if cut.inside is None or source is None or not isinstance(node, ast.Call):
        return ()
    found = undecorated_call(scene, scene.slicer.at(source, node))
    return () if found is None else (found,)
