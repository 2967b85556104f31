"""Whether giving a name a new tensor is enough, or others look at the tensor it names.

`x += 1` may be rewritten as `x = x + 1` only where nobody else has to see the change: a
helper that changes its argument for the caller, or a loop over the tensors of a list, does.
"""

from __future__ import annotations

import ast
from itertools import takewhile

from ...arguments import parameters
from ...forward_flow import bound, flows_out
from ...model import Place
from ...program import Program, Source, called_name, own_nodes
from ...program_index import index_of
from ..dataflow.cut_kinds import makes_leaf


def rebinding_is_enough(program: Program, place: Place, target: ast.expr) -> bool:
    """Whether the written name is read again in its own scope after the statement at `place`.

    Attributes and items keep the new tensor where the old one was, so they always are enough.
    """
    if not isinstance(target, ast.Name):
        return isinstance(target, (ast.Attribute, ast.Subscript))
    statement, source = program.statement_at(place), program.source_at(place)
    if statement is None or source is None:
        return False
    scope = source.function_at(place) or source.tree
    if _bound_by_loop(source, scope, statement, target.id):
        return False
    if _is_argument(scope, target.id):
        return _handed_back(scope, target.id)
    return True


def value_goes_on(program: Program, place: Place, target: ast.expr) -> bool:
    """Whether a name was written that the result of the function, or the loss of a loop's round,
    is computed from below: a value on its way, and neither a starting value nor an update."""
    source, write = program.source_at(place), program.statement_at(place)
    if source is None or write is None or not isinstance(target, ast.Name):
        return False
    loops = (n for n in source.around(write) if isinstance(n, (ast.For, ast.While)))
    scope = source.function_at(place) or next(loops, None)
    if scope is None or _bound_by_loop(source, scope, write, target.id):
        return False
    above = [n for n in own_nodes(scope) if getattr(n, "lineno", write.lineno) < write.lineno]
    made = [n.value for n in above if isinstance(n, ast.Assign) and target.id in bound(n)]
    given = _is_argument(scope, target.id)
    if any(called_name(n) == "backward" for n in above) or any(map(makes_leaf, made)):
        return False  # the step is taken, or the leaf has just been made
    on = bool(made or given) and flows_out(scope, target, changed=target.id)
    return on and not _is_done(program, scope, target)


def _is_done(program: Program, scope: ast.AST, name: ast.Name) -> bool:
    """Whether the function only hands the written tensor back, to callers that drop it."""
    return _returns(scope, name.id) and _value_is_dropped(program, getattr(scope, "name", ""))


def _returns(scope: ast.AST, name: str) -> bool:
    returned = (n.value for n in own_nodes(scope) if isinstance(n, ast.Return))
    return any(isinstance(n, ast.Name) and n.id == name for n in returned)


def hands_back(program: Program, place: Place, target: ast.expr) -> bool:
    """Whether the function around a place returns the written tensor itself."""
    scope = _scope(program, place)
    return scope is not None and isinstance(target, ast.Name) and _returns(scope, target.id)


def hands_back_argument(program: Program, place: Place, name: str) -> bool:
    """Whether the function around a place got this name as an argument and returns it to callers
    that take it: one that calls it as a statement of its own wants the write.  So it is with a name
    of its own for what an argument holds: `weight` of `weight = data.weight`."""
    scope = _scope(program, place)
    if scope is None or not _handed_back(scope, name):
        return False
    if not _is_argument(scope, name) and not _is_part_of_argument(scope, name):
        return False
    called = getattr(scope, "name", "")
    return not _value_is_dropped(program, called)


def _value_is_dropped(program: Program, name: str) -> bool:
    """Whether a function is called for its effects; the last line of a cell shows its value."""
    alone = index_of(program).nodes(ast.Expr, naming=(name,))
    return any(called_name(n.value) == name for s, n in alone if n not in s.tree.body[-1:])


def changes_argument(program: Program, place: Place, target: ast.expr) -> bool:
    """Whether the function around a place writes to its argument and returns nothing of it."""
    scope = _scope(program, place)
    if scope is None or not isinstance(target, ast.Name):
        return False
    return _is_argument(scope, target.id) and not _handed_back(scope, target.id)


def _scope(program: Program, place: Place) -> ast.AST | None:
    """The function around a place, or the whole source."""
    source = program.source_at(place)
    if source is None:
        return None
    return source.function_at(place) or source.tree


def _bound_by_loop(source: Source, scope: ast.AST, statement: ast.stmt, name: str) -> bool:
    """The name is the target of a loop around the statement: its list keeps the old tensor."""
    inside = takewhile(lambda outer: outer is not scope, source.around(statement))
    return any(
        getattr(node, "id", "") == name
        for loop in inside
        if isinstance(loop, ast.For)
        for node in ast.walk(loop.target)
    )


def _is_argument(scope: ast.AST, name: str) -> bool:
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return name in parameters(scope)


def _is_part_of_argument(scope: ast.AST, name: str) -> bool:
    """Whether the one plain assignment to a name gives it what an argument other than `self`
    holds."""
    given = [n for n in ast.walk(scope) if isinstance(n, ast.Assign) and _assigns(n, name)]
    path = given[0].value if len(given) == 1 else None
    while isinstance(path, (ast.Attribute, ast.Subscript)):
        path = path.value
    root = path.id if isinstance(path, ast.Name) else ""
    return root not in ("self", "") and _is_argument(scope, root)


def _assigns(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in statement.targets)


def _handed_back(scope: ast.AST, name: str) -> bool:
    """The function returns (or yields) something made from the name, so callers need not see the
    write."""
    kinds = (ast.Return, ast.Yield)
    returns = (n for n in ast.walk(scope) if isinstance(n, kinds) and n.value is not None)
    return any(
        isinstance(n, ast.Name) and n.id == name for r in returns for n in ast.walk(r)
    ) or _is_forward(scope)


def _is_forward(scope: ast.AST) -> bool:
    """A module's forward is not meant to change its input for the caller."""
    return isinstance(scope, ast.FunctionDef) and scope.name == "forward"
