"""Whether a number that was taken from a tensor goes into the loss, by the names it gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...program import is_text
from ..observe.code_positions import CodePosition


def flows_into(cut: CodePosition, root: CodePosition, *, held: bool = False) -> bool:
    """Whether what a statement computed is read, over any number of assignments in the same
    scope, by the `loss` of `loss.backward()`; with `held` also out of what holds it."""
    loss = _receiver(root.node)
    if cut.statement is None or cut.source is not root.source or not loss:
        return False
    source = cut.source
    function = source.function_around(cut.statement)
    if function is not source.function_around(root.statement or cut.statement):
        return False
    known = set(targets_of(cut.statement, held))
    return loss in spread(assignments_around(cut), known, held=held)


def assignments_around(spot: CodePosition) -> list[ast.AST]:
    """Those of the function that it stands in, or of its cell."""
    return [n for n in ast.walk(spot.scope) if isinstance(n, _ASSIGNING)]


def spread(assignments: Sequence[ast.AST], known: set[str], *, held: bool = False) -> set[str]:
    """The names that get what these hold, over any number of assignments; `known` gets them."""
    while more := {t for a in assignments if reads(a) & known for t in targets_of(a, held)} - known:
        known |= more
    return known


def may_flow(cut: CodePosition, root: CodePosition) -> bool:
    """Whether a value may go into the loss, as far as the text of one function tells: not from a
    line that only logs it."""
    statement, source = cut.statement, cut.source
    if statement is None:
        return False
    function = source.function_around(statement)
    same = source is root.source and function is source.function_around(root.statement or statement)
    if same and isinstance(statement, _ASSIGNING) and _receiver(root.node):
        return flows_into(cut, root, held=True)
    if not isinstance(statement, ast.Expr):
        return True
    kept = _receiver(statement.value)  # `terms.append(x.item())`
    read = (
        n for n in ast.walk(function or source.tree) if isinstance(n, (*_ASSIGNING, ast.Return))
    )
    return bool(kept) and any(kept in reads(node) for node in read)


def is_helper(spot: CodePosition | None) -> bool:
    """Whether what is computed there is all that its function gives: `def sg(t): return
    t.detach()`."""
    node = None if spot is None else spot.node
    if spot is None or node is None:
        return False
    around = next((n for n in spot.source.around(node) if isinstance(n, _FUNCTIONS)), None)
    if isinstance(around, ast.Lambda):
        return around.body is node
    statement = spot.statement
    if around is None or not isinstance(statement, ast.Return) or statement.value is not node:
        return False
    return around.body[-1] is statement and all(is_text(s) for s in around.body[:-1])


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_ASSIGNING = (ast.Assign, ast.AugAssign, ast.AnnAssign)


def _receiver(node: ast.AST | None) -> str:
    """`loss` of `loss.backward()`; the root of `(a + b).backward()` has no name."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    named = (ast.Name, ast.Attribute)
    return ast.unparse(node.func.value) if isinstance(node.func.value, named) else ""


def targets_of(statement: ast.AST, held: bool = False) -> Iterator[str]:
    """What a statement gives a value; with `held` what it is put into, too."""
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    for target in targets:
        for element in getattr(target, "elts", [] if target is None else [target]):
            yield ast.unparse(element)
            while held and isinstance(element, (ast.Subscript, ast.Attribute)):
                element = element.value
                yield ast.unparse(element)


def reads(statement: ast.AST) -> set[str]:
    """The names in the value of a statement, or in what a loop goes through."""
    value = getattr(statement, "value", None) or getattr(statement, "iter", None)
    nodes = ast.walk(value) if value is not None else ()
    return {ast.unparse(n) for n in nodes if isinstance(n, (ast.Name, ast.Attribute))}
