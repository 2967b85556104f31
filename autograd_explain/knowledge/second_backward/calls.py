"""The calls behind a second backward, each in the run of the function that its line stands in."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from autograd_explain.inspect.dataflow import ExprAt, safe_lookup
from autograd_explain.inspect.dataflow.expression import Scope
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.program import called_name

from .freed_part import GOING_BACK, FreedPart


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls behind a second backward; None where a line does not make just one of the kind."""

    first: ExprAt | None  #: the earlier `loss.backward()`, or `grad(loss, …)`
    made: ExprAt | None  #: the call whose value the old part of the graph belongs to
    steps: tuple[tuple[TraceEvent, ExprAt | None], ...]  #: `optimizer.step()` since the earlier one


def calls_of(scene: Scene, part: FreedPart) -> Calls:
    first, maker = part.first, part.maker
    steps = [m for m in scene.history.steps if m.op == "step"]
    since = (m for m in steps if first is not None and m.order > first.order)
    return Calls(
        None if first is None else _call_at(scene, first, *GOING_BACK),
        None if maker is None else _value_call(scene, maker),
        tuple((step, _call_at(scene, step, "step")) for step in since),
    )


def _call_at(scene: Scene, moment: TraceEvent, *names: str) -> ExprAt | None:
    """The one call of these names that a moment's line makes."""
    ran = _ran(scene, moment)
    return None if ran is None else _call_of(*ran, *names)


def _value_call(scene: Scene, moment: TraceEvent) -> ExprAt | None:
    """The call whose value the statement at a moment assigns."""
    ran = _ran(scene, moment)
    value = None if ran is None else getattr(ran[1], "value", None)
    return ExprAt(ran[0], value) if ran is not None and isinstance(value, ast.Call) else None


def _ran(scene: Scene, moment: TraceEvent) -> tuple[Scope, ast.stmt] | None:
    """The statement at a moment and the function's run in which it stood, called as the lines
    above it say."""
    program, slicer = scene.program, scene.slicer
    ran: tuple[Scope, ast.stmt] | None = None
    for place in moment.path:
        source, statement = program.source_at(place), program.statement_at(place)
        if source is None or statement is None:
            return None
        body = slicer.index(source).body_of(statement)
        call = None if ran is None else _call_of(*ran, getattr(body, "name", ""))
        owner = call and call.receiver
        found = safe_lookup.MISSING if owner is None else slicer.value(owner)
        scope = slicer.scope_of(source, body, None if found is safe_lookup.MISSING else found)
        ran = replace(scope, call=scope.call or call), statement
    return ran


def _call_of(scope: Scope, statement: ast.stmt, *names: str) -> ExprAt | None:
    calls = (n for n in ast.walk(statement) if isinstance(n, ast.Call))
    named = [n for n in calls if called_name(n) in names]
    return ExprAt(scope, named[0]) if len(named) == 1 else None
