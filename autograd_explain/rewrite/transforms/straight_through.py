"""The loss of a codebook that was taken of the straight-through value `z + (q - z).detach()`, which
passes gradient to `z` alone, instead of the codes `q` themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...arguments import bound_arguments
from ...model import Edits, Place
from ...program import Program, Source, called_name, last_name, own_nodes
from ...program_index import index_of
from .uncut import Patch, apply_patches, lines_before, node_at, passed_through, without_ending


@dataclass(frozen=True, eq=False)
class _Passed:
    """`z + (q - z).detach()`; `name` is what the statement calls it, "" where it returns it."""

    source: Source
    scope: ast.AST
    statement: ast.Assign | ast.Return
    codes: str
    encoded: ast.expr
    name: str


def codes_in_loss(program: Program, place: Place) -> Edits | None:
    """`q` for the straight-through value where this is compared with `z.detach()`: in the function
    that makes it, else in those that call it, which get `q` as a further result.  None where no
    such loss is seen, or the value goes other ways."""
    passed = _passed(program, place)
    if passed is None:
        return None
    compared = list(_compared(passed.scope, passed.name, passed.encoded, passed.statement.lineno))
    return apply_patches(_named_apart(passed, compared)) if compared else _called(program, passed)


def _passed(program: Program, place: Place) -> _Passed | None:
    source, cut = program.source_at(place), node_at(program, place)
    total = None if source is None or cut is None else source.parents.get(cut)
    found = passed_through(total)
    statement = None if source is None or total is None else source.parents.get(total)
    if source is None or found is None or not isinstance(statement, (ast.Assign, ast.Return)):
        return None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    kept, other, difference = found
    plain = isinstance(difference.left, ast.Name) and (target is None or last_name(target))
    if other is not cut or not plain or not isinstance(target, (ast.Name, type(None))):
        return None
    scope = source.function_around(statement) or source.tree
    return _Passed(source, scope, statement, last_name(difference.left), kept, last_name(target))


def _compared(scope: ast.AST, name: str, encoded: ast.expr, behind: int) -> Iterator[ast.Name]:
    """The readings of a name beside `z.detach()`: `mse_loss(s, z.detach())`, `s - z.detach()`."""
    for node in own_nodes(scope):
        parts = node.args[:2] if isinstance(node, ast.Call) else []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            parts = [node.left, node.right]
        for part, other in zip(parts, reversed(parts), strict=True) if len(parts) == 2 else ():
            if isinstance(part, ast.Name) and part.id == name and part.lineno > behind:
                ended = without_ending(other)
                if ended is not other and ast.dump(ended) == ast.dump(encoded):
                    yield part


def _named_apart(passed: _Passed, compared: list[ast.Name]) -> list[Patch]:
    """The codes read there, under a name of their own where the statement takes theirs."""
    name, patches = passed.codes, list[Patch]()
    if _is_bound_again(passed):
        name = _free(passed.scope, f"{name}_codes")
        line = f"{name} = {passed.codes}"
        patches = [lines_before(passed.source, passed.statement, line)]
    return [*patches, *(Patch(passed.source, passed.source.span(n), name) for n in compared)]


def _is_bound_again(passed: _Passed) -> bool:
    names = (n for n in own_nodes(passed.scope) if isinstance(n, ast.Name) and n.id == passed.codes)
    stored = (n for n in names if isinstance(n.ctx, ast.Store))
    return any(n.lineno >= passed.statement.lineno for n in stored)


def _free(scope: ast.AST, wish: str) -> str:
    taken = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)}
    return next(w for w in (wish, *(f"{wish}_{i}" for i in range(2, 99))) if w not in taken)


def _called(program: Program, passed: _Passed) -> Edits | None:
    """The same in those that call the function."""
    function = passed.scope
    if not isinstance(function, ast.FunctionDef) or passed.codes == passed.name:
        return None
    returned = [n.value for n in own_nodes(function) if isinstance(n, ast.Return)]
    value = returned[0] if len(returned) == 1 else None
    results = value.elts if isinstance(value, ast.Tuple) else [value]
    own = passed.statement.value if isinstance(passed.statement, ast.Return) else None
    meant = [r is own or (r is not None and ast.unparse(r) == passed.name) for r in results]
    at = meant.index(True) if any(meant) else None
    end, calls = passed.source.span(value), list(_calls(program, passed.source, function))
    if at is None or end is None or not calls or _is_bound_again(passed):
        return None
    found = [
        _in_caller(passed, function, *call, at if len(results) > 1 else None) for call in calls
    ]
    patches = [Patch(passed.source, end.end, f", {passed.codes}"), *(p for f in found for p in f)]
    return apply_patches(patches) if all(found) and max(map(len, found)) > 1 else None


def _calls(
    program: Program, source: Source, function: ast.FunctionDef
) -> Iterator[tuple[Source, ast.Call]]:
    """The calls of the function, of an object of its class for a `forward`."""
    owner = source.parents.get(function)
    if function.name != "forward" or not isinstance(owner, ast.ClassDef):
        yield from index_of(program).calls_of(function.name)
        return
    names = {n for _, s in index_of(program).nodes(ast.Assign) for n in _made(s, owner.name)}
    for where, node in index_of(program).nodes(ast.Call):
        if called_name(node) in names:
            yield where, node


def _made(statement: ast.Assign, kind: str) -> Iterator[str]:
    """The names that a statement gives to objects of a class."""
    for target in statement.targets:
        pairs = [(target, statement.value)]
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = list(zip(target.elts, statement.value.elts, strict=False))
        yield from (last_name(t) for t, v in pairs if called_name(v) == kind)


def _in_caller(
    passed: _Passed, function: ast.FunctionDef, source: Source, call: ast.Call, at: int | None
) -> list[Patch]:
    """A name for the further result, and the losses that read it; [] where the results are not all
    given names."""
    statement = source.parents.get(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    several = isinstance(target, ast.Tuple)
    named = target.elts[at] if isinstance(target, ast.Tuple) and at is not None else target
    span = source.span(target)
    if not isinstance(named, ast.Name) or span is None or several is (at is None):
        return []
    scope = source.function_around(call) or source.tree
    given = bound_arguments(function, call).get(ast.unparse(passed.encoded))
    compared = [] if given is None else _compared(scope, named.id, given, call.lineno)
    name = _free(scope, f"{named.id}_{passed.codes}")
    read = [Patch(source, source.span(n), name) for n in compared]
    return [Patch(source, span.end, f", {name}"), *read]
