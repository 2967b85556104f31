"""The in-place write to a live tensor in what a failing frame ran before, told without any run.

Where a library made the tensor, no run of the source may get to it.  A tensor that was saved before
anything had written to it is overwritten by whatever writes to it at all.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

import torch

from ...arguments import bound_arguments
from ...forward_flow import is_simple
from ...incident import LiveFrame
from ...isolation.type_checks import is_a
from ...model import Place
from ...program import Source, blocks, own_nodes
from ...program_index import Definition, functions_of
from ..dataflow.safe_lookup import in_frame
from ..history import TraceEvent
from ..live.graph import SavedTensor
from ..live.names import shares_memory
from ..scene import Scene
from .statements import base_of, write_of

_MAY_NOT_RUN = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.comprehension)


def handed_write(scene: Scene, saved: SavedTensor) -> TraceEvent | None:
    """The one statement that certainly ran and writes to a name of the saved tensor: of a failing
    frame, or of a function that one called with it; None where several do."""
    if saved.saved_version != 0:
        return None
    found = [w for live in scene.incident.user_frames for w in _writes(scene, live, saved)]
    return found[0] if len(found) == 1 else None


def _writes(scene: Scene, live: LiveFrame, saved: SavedTensor) -> Iterator[TraceEvent]:
    source = scene.program.source_of(live.code)
    scope = None if source is None else _scope(source, live)
    if source is None or scope is None:
        return
    for statement in _ran_before(scope, live.line):
        bound = _stored(n for n in own_nodes(scope) if _comes_after(n, statement))

        def holds(value: ast.expr, bound: set[str] = bound) -> bool:
            known = isinstance(value, ast.Name) and value.id not in bound
            return known and _is_saved(in_frame(value, live.frame), saved)

        name = None if isinstance(scope, ast.Module) else live.function
        place = source.place(statement.lineno, name, statement)
        write = write_of(statement)
        if write is not None and holds(base_of(write.target)):
            yield TraceEvent(0, place, write.op, target=write.target_text)
        for call in (n for n in ast.walk(statement) if isinstance(n, ast.Call)):
            if any(map(holds, (*call.args, *(k.value for k in call.keywords)))):
                called = scene.index.definition(in_frame(call.func, live.frame))
                yield from () if called is None else _in_function(called, call, holds, place)


def _scope(source: Source, live: LiveFrame) -> ast.Module | ast.FunctionDef | None:
    """What the frame executes, where its statements run one after the other."""
    if live.function == "<module>":
        return source.tree
    found = functions_of(source.tree, live.code)
    return found[0] if len(found) == 1 and isinstance(found[0], ast.FunctionDef) else None


def _is_saved(value: object, saved: SavedTensor) -> bool:
    """Whether it is a name of the saved memory with the version counter of that."""
    return (
        is_a(value, torch.Tensor)
        and isinstance(value, torch.Tensor)
        and shares_memory(value, saved.tensor)
        and value._version == saved.current_version
    )


def _ran_before(scope: ast.AST, line: int) -> Iterator[ast.stmt]:
    """The statements before a line in the blocks around it: they have run, and all of each."""
    for node in (scope, *own_nodes(scope)):
        for block in blocks(node):
            around = [i for i, s in enumerate(block) if s.lineno <= line <= _end(s)]
            yield from (s for i in around[:1] for s in block[:i] if _runs_whole(s))


def _runs_whole(statement: ast.stmt) -> bool:
    parts = ast.walk(statement)
    return is_simple(statement) and not any(isinstance(n, _MAY_NOT_RUN) for n in parts)


def _in_function(
    called: Definition, call: ast.Call, holds: Callable[[ast.expr], bool], at: Place
) -> Iterator[TraceEvent]:
    """The statements of a function that run in each call and write to what this call gives."""
    function = called.node
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return
    known = {name for name, value in bound_arguments(function, call).items() if holds(value)}
    for statement in () if _is_generator(function) else function.body:
        write = write_of(statement) if _runs_whole(statement) else None
        base = None if write is None else base_of(write.target)
        if write is not None and isinstance(base, ast.Name) and base.id in known:
            place = called.at(statement)
            yield TraceEvent(0, place, write.op, (at,), target=write.target_text)
        if any(isinstance(n, (ast.Return, ast.Raise)) for n in ast.walk(statement)):
            return
        known -= _stored(ast.walk(statement))


def _is_generator(function: ast.FunctionDef) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own_nodes(function))


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _comes_after(node: ast.AST, statement: ast.stmt) -> bool:
    at = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    return at > (_end(statement), statement.end_col_offset or 0)


def _end(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno
