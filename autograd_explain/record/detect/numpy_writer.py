"""The statement that wrote memory behind torch's back, from the calls before and after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...forward_flow import contains
from ...inspect.history import TraceEvent
from ...model import Place
from ...program import Program, Source
from ...program_index import index_of
from ..observe.call_sites import CallFrame, CallSite
from ..observe.code_positions import CodePosition, spot_of
from .array_writes import changes, may_write_array, writes_array, written_array


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A statement that may have run in between, and the lines that led to it."""

    source: Source
    statement: ast.stmt
    chain: tuple[Place, ...] = ()


def writer_between(
    program: Program,
    before: CallSite,
    after: CallSite,
    order: int,
    names: frozenset[str] = frozenset(),
) -> TraceEvent | None:
    """The one statement between two calls that may have written an array; None where several
    may have, or none is in sight.  `names` are what the program calls the array."""
    between = _between(program, before, after)
    if between is None:
        return None
    own = _of_first_call(program, before, names)
    between += own
    names |= {written_array(c.statement) for c in own}
    of_array = [c for c in between if changes(c.statement) and written_array(c.statement) in names]
    for direct in (
        of_array,
        [c for c in between if writes_array(c.statement)],
        [c for c in between if may_write_array(c.statement)],
    ):
        if len({id(c.statement) for c in direct}) == 1:
            return _moment(direct[0].source, direct[0].statement, direct[0].chain, order)
        if direct:
            return None
    calling = [c for c in between if _functions(program, c.statement)]
    return _inside(program, calling[0], order) if len(calling) == 1 else None


def _of_first_call(program: Program, before: CallSite, names: frozenset[str]) -> list[_Candidate]:
    """`buffer[:] = t.numpy()`, `t.numpy().sort()`: the call comes first, then its statement writes
    the array."""
    spot = spot_of(program, before.steps[0])
    written = "" if spot is None or spot.statement is None else written_array(spot.statement)
    if spot is None or spot.statement is None or not (written in names or ".numpy()" in written):
        return []
    return [_Candidate(spot.source, spot.statement, _chain(program, before.steps, 0))]


def _inside(program: Program, call: _Candidate, order: int) -> TraceEvent:
    """The one write in the functions that a statement calls; else the statement itself."""
    simple = [
        (o, s) for o, function in _functions(program, call.statement) for s in _simple(function)
    ]
    for writes in (writes_array, may_write_array):
        inner = [(owner, s) for owner, s in simple if writes(s)]
        if len(inner) == 1:
            line = call.source.place(call.statement.lineno, None, call.statement)
            return _moment(*inner[0], (*call.chain, line), order)
        if inner:
            break
    return _moment(call.source, call.statement, call.chain, order)


def _between(program: Program, before: CallSite, after: CallSite) -> list[_Candidate] | None:
    """The statements that may run between two calls: the rest of the functions that the first one
    stood in, what follows at the level of both, the beginning of the second one's functions."""
    level = _common(before.steps, after.steps)
    if level is None:
        return None
    outer, inner = len(before.steps) - level, len(after.steps) - level
    first, last = (spot_of(program, s) for s in (before.steps[outer], after.steps[inner]))
    if first is None or last is None:
        return None
    own = _chain(program, before.steps, outer)
    forward = before.steps[outer].instruction < after.steps[inner].instruction
    return [
        *(c for at in range(outer) for c in _around(program, before.steps, at, rest=True)),
        *(_Candidate(o, s, own) for o, s in _at_one_level(program, first, last, forward)),
        *(c for at in range(inner) for c in _around(program, after.steps, at, rest=False)),
    ]


def _around(
    program: Program, steps: Sequence[CallFrame], at: int, rest: bool
) -> Iterator[_Candidate]:
    """The statements of the function around a step: those after it, or those before it."""
    spot = spot_of(program, steps[at])
    if spot is None or spot.statement is None:
        return
    scope = spot.source.function_around(spot.statement) or spot.source.tree
    loop = _loop(scope, spot.statement, spot.statement)
    for statement in _simple(scope):
        again = loop is not None and contains(loop, statement)
        in_order = statement.lineno > spot.line if rest else statement.lineno < spot.line
        if statement is not spot.statement and (in_order or again):
            yield _Candidate(spot.source, statement, _chain(program, steps, at))


def _chain(program: Program, steps: Sequence[CallFrame], at: int) -> tuple[Place, ...]:
    """The lines that led to a step, outermost first."""
    outer = [spot_of(program, step) for step in reversed(steps[at + 1 :])]
    return tuple(s.place(whole=False) for s in outer if s is not None)


def _common(before: Sequence[CallFrame], after: Sequence[CallFrame]) -> int | None:
    """The innermost frame that both calls share, counted from the outermost (1); None: none."""
    found = None
    both = zip(reversed(before), reversed(after), strict=False)
    for level, (a, b) in enumerate(both, 1):
        whole_cell = _is_cell(a) and _is_cell(b)
        if a.code is not b.code and not whole_cell:
            break
        found = level
        if a.code is not b.code or a.instruction != b.instruction:
            break
    return found


def _is_cell(step: CallFrame) -> bool:
    """The top level of a cell, which IPython compiles statement by statement."""
    # IPython 7.34 names it "<cell line: 3>".
    return step.cell is not None and step.code.co_name.startswith(("<module>", "<cell line:"))


def _at_one_level(
    program: Program, first: CodePosition, last: CodePosition, forward: bool
) -> Iterator[tuple[Source, ast.stmt]]:
    """Simple statements that may run after `first` and before `last`, their own left out."""
    if first.source is last.source:
        if not (forward and first.statement is last.statement):
            yield from ((first.source, s) for s in _within(first, last))
        return
    for source in index_of(program).runs_between(first.source, last.source) or ():
        for statement in _simple(source.tree, own=True):
            after = source is not first.source or statement.lineno > first.line
            before = source is not last.source or statement.lineno < last.line
            if after and before:
                yield source, statement


def _simple(scope: ast.AST, own: bool = False) -> list[ast.stmt]:
    """The simple statements of a scope in the order of the text; with `own` those of functions
    defined in it are left out."""
    inner = {
        id(s)
        for f in ast.walk(scope)
        if own and isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        for s in ast.walk(f)
    }
    found = [s for s in ast.walk(scope) if isinstance(s, ast.stmt) and not hasattr(s, "body")]
    kept = [s for s in found if id(s) not in inner]
    return sorted(kept, key=lambda s: (s.lineno, s.col_offset))


def _within(first: CodePosition, last: CodePosition) -> Iterator[ast.stmt]:
    a, b = first.statement, last.statement
    if a is None or b is None:
        return
    scope = first.source.function_around(a) or first.source.tree
    simple = _simple(scope, own=isinstance(scope, ast.Module))
    if a not in simple or b not in simple:
        return
    i, j = simple.index(a), simple.index(b)
    yield from simple[i + 1 : j] if i < j else ()
    if i >= j:  # once around a loop
        loop = _loop(scope, a, b)
        inside = [s for s in simple if loop is not None and contains(loop, s)]
        yield from (s for s in inside if simple.index(s) > i or simple.index(s) < j)


def _loop(scope: ast.AST, a: ast.stmt, b: ast.stmt) -> ast.AST | None:
    found = None
    for node in ast.walk(scope):
        if isinstance(node, (ast.For, ast.While)) and contains(node, a) and contains(node, b):
            found = node
    return found


def _functions(program: Program, statement: ast.stmt) -> list[tuple[Source, ast.FunctionDef]]:
    """The user's functions and methods that a statement calls, found by name."""
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            function = node.func
            names.add(function.attr if isinstance(function, ast.Attribute) else _name(function))
    found = index_of(program).nodes(ast.FunctionDef)
    return [(source, node) for source, node in found if node.name in names]


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _moment(
    source: Source, statement: ast.stmt, chain: tuple[Place, ...], order: int
) -> TraceEvent:
    place = source.place(statement.lineno, None, statement)
    return TraceEvent(order, place, "numpy", chain, written_array(statement))
