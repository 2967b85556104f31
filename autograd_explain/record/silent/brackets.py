"""The statement that wrote memory behind torch's back, from the calls before and after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...inspect.history import Moment
from ...model import Place
from ...program import Program, Source
from ..expressions import Spot, spot_of
from ..sites import Site, Step

_NUMPY_WRITERS = frozenset(
    {"fill", "sort", "put", "copyto", "put_along_axis", "resize", "setfield"}
)


def writer_between(program: Program, before: Site, after: Site, order: int) -> Moment | None:
    """The one statement between two calls that may have written an array; None where several
    may have, or none is in sight."""
    common = _common(before.steps, after.steps)
    if common is None:
        return None
    first, last = (spot_of(program, step) for step in common)
    if first is None or last is None:
        return None
    between = tuple(_between(program, first, last))
    for writes in (_writes_array, _may_write_array):
        direct = [(source, s) for source, s in between if writes(s)]
        if len(direct) == 1:
            return _moment(program, *direct[0], (), order)
        if direct:
            return None
    calling = [(source, s) for source, s in between if _functions(program, s)]
    return _inside(program, *calling[0], order) if len(calling) == 1 else None


def _inside(program: Program, source: Source, call: ast.stmt, order: int) -> Moment:
    """The one write in the functions that a statement calls; else the statement itself."""
    simple = [(o, s) for o, function in _functions(program, call) for s in _simple(function)]
    for writes in (_writes_array, _may_write_array):
        inner = [(owner, s) for owner, s in simple if writes(s)]
        if len(inner) == 1:
            chain = (source.place(call.lineno, None, call),)
            return _moment(program, *inner[0], chain, order)
        if inner:
            break
    return _moment(program, source, call, (), order)


def _common(before: Sequence[Step], after: Sequence[Step]) -> tuple[Step, Step] | None:
    """The innermost frame that both calls share: where each of them stood in it."""
    found = None
    for a, b in zip(reversed(before), reversed(after), strict=False):
        whole_cell = _is_cell(a) and _is_cell(b)
        if a.code is not b.code and not whole_cell:
            break
        found = (a, b)
        if a.code is not b.code or a.instruction != b.instruction:
            break
    return found


def _is_cell(step: Step) -> bool:
    """The top level of a cell, which IPython compiles statement by statement."""
    # IPython 7.34 names it "<cell line: 3>".
    return step.cell is not None and step.code.co_name.startswith(("<module>", "<cell line:"))


def _between(program: Program, first: Spot, last: Spot) -> Iterator[tuple[Source, ast.stmt]]:
    """Simple statements that may run after `first` and before `last`, their own left out."""
    if first.source is last.source:
        yield from ((first.source, s) for s in _within(first, last))
        return
    cells = list(program.cells)
    if first.source not in cells or last.source not in cells:
        return
    start, end = cells.index(first.source), cells.index(last.source)
    for source in cells[start : end + 1]:
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


def _within(first: Spot, last: Spot) -> Iterator[ast.stmt]:
    a, b = first.statement, last.statement
    if a is None or b is None:
        return
    scope = _scope(first.source.tree, a)
    simple = _simple(scope, own=isinstance(scope, ast.Module))
    if a not in simple or b not in simple:
        return
    i, j = simple.index(a), simple.index(b)
    yield from simple[i + 1 : j] if i < j else ()
    if i >= j:  # once around a loop
        loop = _loop(scope, a, b)
        inside = [s for s in simple if loop is not None and _contains(loop, s)]
        yield from (s for s in inside if simple.index(s) > i or simple.index(s) < j)


def _scope(tree: ast.Module, statement: ast.stmt) -> ast.AST:
    found: ast.AST = tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _contains(node, statement):
            found = node
    return found


def _loop(scope: ast.AST, a: ast.stmt, b: ast.stmt) -> ast.AST | None:
    found = None
    for node in ast.walk(scope):
        if isinstance(node, (ast.For, ast.While)) and _contains(node, a) and _contains(node, b):
            found = node
    return found


def _contains(outer: ast.AST, inner: ast.AST) -> bool:
    return any(n is inner for n in ast.walk(outer))


def _writes_array(statement: ast.stmt) -> bool:
    """`buffer[i] = x`, `buffer.fill(0)`, `np.copyto(buffer, x)`, `np.add(a, b, out=buffer)`."""
    if isinstance(statement, ast.Assign) and any(_is_item(t) for t in statement.targets):
        return True
    if isinstance(statement, ast.AugAssign) and _is_item(statement.target):
        return True
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    return not hasattr(statement, "body") and any(_writes_by_call(c) for c in calls)


def _may_write_array(statement: ast.stmt) -> bool:
    """`buffer += x`, which for an array writes it and for a number makes a new one."""
    return isinstance(statement, ast.AugAssign) and not isinstance(statement.value, ast.Constant)


def _is_item(target: ast.expr) -> bool:
    """An item of an array; a text as the key means a dict."""
    if not isinstance(target, ast.Subscript):
        return False
    key = target.slice
    return not (isinstance(key, ast.Constant) and isinstance(key.value, str))


def _writes_by_call(call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Attribute) and call.func.attr in _NUMPY_WRITERS
    return named or any(k.arg == "out" for k in call.keywords)


def _functions(program: Program, statement: ast.stmt) -> list[tuple[Source, ast.FunctionDef]]:
    """The user's functions and methods that a statement calls, found by name."""
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            function = node.func
            names.add(function.attr if isinstance(function, ast.Attribute) else _name(function))
    return [
        (source, node)
        for source in program.cells
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef) and node.name in names
    ]


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _moment(
    program: Program, source: Source, statement: ast.stmt, chain: tuple[Place, ...], order: int
) -> Moment:
    place = source.place(statement.lineno, None, statement)
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AugAssign):
        targets = [statement.target]
    target = targets[0] if targets else None
    while isinstance(target, ast.Subscript):
        target = target.value
    known = target is not None and not isinstance(target, (ast.Tuple, ast.List))
    written = ast.unparse(target) if known and target is not None else ""
    return Moment(order, place, "numpy", chain, written)
