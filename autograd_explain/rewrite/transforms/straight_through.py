"""The loss of a codebook that was taken of the straight-through value `z + (q - z).detach()`, which
passes gradient to `z` alone, instead of the codes `q` themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...arguments import bound_arguments
from ...model import Place
from ...program import Program, Source, called_name, last_name, own_nodes
from ...program_index import index_of
from ..engine.proposal import Edits
from .uncut import Patch, apply_patches, node_at, without_ending


@dataclass(frozen=True, eq=False)
class _Passed:
    """`z + (q - z).detach()`; `name` is what the statement calls it, "" where it returns it."""

    source: Source
    scope: ast.AST
    statement: ast.stmt
    codes: ast.Name
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
    if not compared:
        return _in_callers(program, passed)
    return apply_patches(_named_apart(passed, compared))


def _passed(program: Program, place: Place) -> _Passed | None:
    source, cut = program.source_at(place), node_at(program, place)
    total = None if source is None or cut is None else source.parents.get(cut)
    if source is None or cut is None or not isinstance(total, ast.BinOp):
        return None
    difference, other = without_ending(cut), total.right if total.left is cut else total.left
    added = isinstance(total.op, ast.Add) and isinstance(difference, ast.BinOp)
    if not added or not isinstance(difference, ast.BinOp) or not _same(difference.right, other):
        return None
    statement = source.parents.get(total)
    taken = isinstance(difference.op, ast.Sub) and isinstance(difference.left, ast.Name)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    named = len(targets) == 1 and isinstance(targets[0], ast.Name)
    if not taken or not (named or isinstance(statement, ast.Return)):
        return None
    assert isinstance(statement, ast.stmt) and isinstance(difference.left, ast.Name)
    name = last_name(targets[0]) if named else ""
    scope = source.function_around(statement) or source.tree
    return _Passed(source, scope, statement, difference.left, other, name)


def _compared(scope: ast.AST, name: str, encoded: ast.expr, behind: int) -> Iterator[ast.Name]:
    """The readings of a name beside `z.detach()`: `mse_loss(s, z.detach())`, `s - z.detach()`."""
    for node in own_nodes(scope):
        parts = node.args[:2] if isinstance(node, ast.Call) else []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            parts = [node.left, node.right]
        for part, other in zip(parts, reversed(parts), strict=True) if len(parts) == 2 else ():
            if isinstance(part, ast.Name) and part.id == name and part.lineno > behind:
                ended = without_ending(other)
                if ended is not other and _same(ended, encoded):
                    yield part


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)


def _named_apart(passed: _Passed, compared: list[ast.Name]) -> list[Patch]:
    """The codes read there, under a name of their own where the statement takes theirs."""
    name, patches = passed.codes.id, list[Patch]()
    if _is_bound_again(passed, name):
        name = _free(passed.scope, f"{name}_codes")
        patches = _line_before(passed, f"{name} = {passed.codes.id}")
    spans = [passed.source.span(node) for node in compared]
    return [*patches, *(Patch(passed.source, span, name) for span in spans if span is not None)]


def _is_bound_again(passed: _Passed, name: str) -> bool:
    stores = (n for n in own_nodes(passed.scope) if isinstance(n, ast.Name) and n.id == name)
    last = [n for n in stores if isinstance(n.ctx, ast.Store)]
    return any(n.lineno >= passed.statement.lineno for n in last)


def _free(scope: ast.AST, wish: str) -> str:
    taken = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)}
    return next(w for w in (wish, *(f"{wish}_{i}" for i in range(2, 99))) if w not in taken)


def _line_before(passed: _Passed, code: str) -> list[Patch]:
    span = passed.source.span(passed.statement)
    if span is None:
        return []
    indent = passed.source.text.split("\n")[span.line - 1][: span.column]
    return [Patch(passed.source, span.start, f"{code}\n{indent}")] if not indent.strip() else []


def _in_callers(program: Program, passed: _Passed) -> Edits | None:
    function, codes = passed.scope, passed.codes.id
    if not isinstance(function, ast.FunctionDef) or codes == passed.name:
        return None
    returned = [n for n in own_nodes(function) if isinstance(n, ast.Return)]
    value = returned[0].value if len(returned) == 1 else None
    results = value.elts if isinstance(value, ast.Tuple) else [value]
    at = next((i for i, r in enumerate(results) if _is_result(passed, r)), None)
    end = None if value is None else passed.source.span(value)
    calls = list(_calls(program, passed.source, function))
    if at is None or end is None or not calls or _is_bound_again(passed, codes):
        return None
    patches, seen = [Patch(passed.source, end.end, f", {codes}")], False
    for source, call in calls:
        found = _of_caller(passed, function, source, call, at if len(results) > 1 else None)
        if found is None:
            return None
        patches += found
        seen = seen or len(found) > 1
    return apply_patches(patches) if seen else None


def _is_result(passed: _Passed, node: ast.expr | None) -> bool:
    if not passed.name:
        return node is getattr(passed.statement, "value", None)
    return isinstance(node, ast.Name) and node.id == passed.name


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
        if isinstance(node, ast.Call) and called_name(node) in names:
            yield where, node


def _made(statement: ast.Assign, kind: str) -> Iterator[str]:
    """The names that a statement gives to objects of a class."""
    for target in statement.targets:
        pairs = [(target, statement.value)]
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = list(zip(target.elts, statement.value.elts, strict=False))
        yield from (last_name(t) for t, v in pairs if called_name(v) == kind)


def _of_caller(
    passed: _Passed, function: ast.FunctionDef, source: Source, call: ast.Call, at: int | None
) -> list[Patch] | None:
    """A name for the further result, and the losses that read it; None where the results are not
    all given names."""
    statement = source.parents.get(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    named = target.elts[at] if isinstance(target, ast.Tuple) and at is not None else target
    span = source.span(target)
    if (
        not isinstance(named, ast.Name)
        or span is None
        or isinstance(target, ast.Name) is (at is not None)
    ):
        return None
    scope = source.function_around(call) or source.tree
    given = bound_arguments(function, call).get(ast.unparse(passed.encoded))
    compared = [] if given is None else _compared(scope, named.id, given, call.lineno)
    name = _free(scope, f"{named.id}_{passed.codes.id}")
    spans = [s for s in map(source.span, compared) if s is not None]
    return [Patch(source, span.end, f", {name}"), *(Patch(source, s, name) for s in spans)]
