"""The reads through which a loss got a shared value: where the graph ends for that loss alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from autograd_explain.inspect.dataflow import ExprAt, safe_lookup
from autograd_explain.inspect.dataflow.cut_kinds import cut_of
from autograd_explain.inspect.dataflow.expression import Scope
from autograd_explain.inspect.facts.call_levels import path_of
from autograd_explain.inspect.facts.statements import statement_at
from autograd_explain.inspect.facts.torch_call import argument, backward_roots, receiver
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import called_name

_MANY = 400


def uses_for(scene: Scene, first: TraceEvent, made: Iterable[Place]) -> tuple[Place, ...]:
    """The expressions that hand values made at these places to the loss of an earlier backward.

    None of them leads to the failing loss.  () where one of the values reaches the earlier loss in
    another way: ending the graph at the rest would be no repair.
    """
    statements = [statement_at(scene.program, place) for place in made]
    earlier = _loss_of(scene, first)
    if earlier is None or not statements or None in statements:
        return ()
    needed = {id(s) for root in backward_roots(scene) for s in _trail(scene, root, statements)}
    found: list[ExprAt] = []
    for statement in statements:
        mine = [
            next((s for s in reversed(via) if id(s.node) not in needed), None)
            for via in _reads(scene, earlier, statement)
        ]
        if not mine or None in mine:
            return ()
        found += (s for s in mine if s is not None)
    slicer = scene.slicer
    return tuple(dict.fromkeys(slicer.place(spot) for spot in found))


def _trail(scene: Scene, root: ExprAt, statements: list[ast.stmt | None]) -> Iterator[ast.AST]:
    for statement in statements:
        for via in _reads(scene, root, statement):
            yield from (s.node for s in via)


def _reads(scene: Scene, loss: ExprAt, statement: ast.stmt | None) -> Iterator[tuple[ExprAt, ...]]:
    """The names through which each value made by a statement came to the loss with its graph."""
    slicer = scene.slicer
    pending, seen = [loss], {(id(loss.node), id(loss.scope.call))}
    while pending and len(seen) < _MANY:
        for maker in slicer.makers(pending.pop()):
            if _stands_in(scene, maker, statement):
                yield maker.via
            elif (id(maker.node), id(maker.scope.call)) not in seen:
                seen.add((id(maker.node), id(maker.scope.call)))
                pending += () if _cuts(scene, maker) else slicer.operands(maker)


def _cuts(scene: Scene, maker: ExprAt) -> bool:
    """Whether no graph leads on from what an expression reads: `fake.detach()`."""
    node = maker.node
    func = node.func if isinstance(node, ast.Call) else None
    function = None if func is None else scene.slicer.value(ExprAt(maker.scope, func))
    return cut_of(node, maker.path, function) is not None


def _stands_in(scene: Scene, spot: ExprAt | None, statement: ast.stmt | None) -> bool:
    """Whether the statement computed it, itself or in what it calls."""
    slicer = scene.slicer
    while spot is not None:
        if slicer.statement(spot) is statement:
            return True
        spot = spot.scope.call
    return False


def _loss_of(scene: Scene, first: TraceEvent) -> ExprAt | None:
    """`loss` of the one `loss.backward()` (or `grad(loss, …)`) at a moment."""
    call = call_at(scene, first, "backward", "grad")
    if call is None:
        return None
    owner = receiver(call)
    if owner is None or type(scene.slicer.value(owner)).__name__ == "module":
        return argument(call, 0, "tensors", "outputs")
    return owner


def call_at(scene: Scene, moment: TraceEvent, *names: str) -> ExprAt | None:
    """The one call of these names that a moment's line makes, in the scope in which it ran."""
    scope = _scope_of(scene, moment)
    statement = statement_at(scene.program, moment.place)
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement else []
    named = [n for n in calls if called_name(n) in names]
    return ExprAt(scope, named[0]) if scope is not None and len(named) == 1 else None


def value_call(scene: Scene, moment: TraceEvent) -> ExprAt | None:
    """The call whose value the statement at a moment assigns, in the scope in which it ran."""
    value = getattr(statement_at(scene.program, moment.place), "value", None)
    scope = _scope_of(scene, moment) if isinstance(value, ast.Call) else None
    return None if scope is None or value is None else ExprAt(scope, value)


def _scope_of(scene: Scene, moment: TraceEvent) -> Scope | None:
    """The function's run in which a moment happened, called as the lines above it say."""
    slicer = scene.slicer
    scope: Scope | None = None
    caller: ast.stmt | None = None
    for place in path_of(moment):
        source, statement = scene.program.source_at(place), statement_at(scene.program, place)
        if source is None or statement is None:
            return None
        body = slicer.index(source).body_of(statement)
        call = None if scope is None else _call_of(scope, caller, getattr(body, "name", ""))
        owner = receiver(call)
        found = safe_lookup.MISSING if owner is None else slicer.value(owner)
        scope = slicer.scope_of(source, body, None if found is safe_lookup.MISSING else found)
        scope, caller = replace(scope, call=scope.call or call), statement
    return scope


def _call_of(scope: Scope, statement: ast.stmt | None, name: str) -> ExprAt | None:
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement else []
    named = [n for n in calls if called_name(n) == name]
    return ExprAt(scope, named[0]) if len(named) == 1 else None
