"""Whether a number that was taken from a tensor goes into the loss, by the names it gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..observe.code_positions import CodePosition


def flows_into(cut: CodePosition, root: CodePosition) -> bool:
    """Whether what a statement computed is read, over any number of assignments in the same
    scope, by the `loss` of `loss.backward()`."""
    loss = _receiver(root.node)
    if cut.statement is None or cut.source is not root.source or not loss:
        return False
    source = cut.source
    function = source.function_around(cut.statement)
    if function is not source.function_around(root.statement or cut.statement):
        return False
    known = set(_targets(cut.statement))
    within = ast.walk(function or source.tree)
    assignments = [n for n in within if isinstance(n, _ASSIGNING)]
    while loss not in known:
        more = {t for a in assignments if _reads(a) & known for t in _targets(a)} - known
        if not more:
            return False
        known |= more
    return True


def may_flow(cut: CodePosition, root: CodePosition) -> bool:
    """Whether a value may go into the loss, as far as the text of one function tells: not from a
    line that only logs it."""
    statement, source = cut.statement, cut.source
    if statement is None:
        return False
    function = source.function_around(statement)
    same = source is root.source and function is source.function_around(root.statement or statement)
    if same and isinstance(statement, _ASSIGNING) and _receiver(root.node):
        return flows_into(cut, root)
    if not isinstance(statement, ast.Expr):
        return True
    kept = _receiver(statement.value)  # `terms.append(x.item())`
    read = (
        n for n in ast.walk(function or source.tree) if isinstance(n, (*_ASSIGNING, ast.Return))
    )
    return bool(kept) and any(kept in _reads(node) for node in read)


_ASSIGNING = (ast.Assign, ast.AugAssign, ast.AnnAssign)


def _receiver(node: ast.AST | None) -> str:
    """`loss` of `loss.backward()`; the root of `(a + b).backward()` has no name."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    named = (ast.Name, ast.Attribute)
    return ast.unparse(node.func.value) if isinstance(node.func.value, named) else ""


def _targets(statement: ast.AST) -> Iterator[str]:
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    for target in targets:
        if target is not None:
            yield from (ast.unparse(e) for e in getattr(target, "elts", [target]))


def _reads(statement: ast.AST) -> set[str]:
    value = getattr(statement, "value", None)
    nodes = ast.walk(value) if value is not None else ()
    return {ast.unparse(n) for n in nodes if isinstance(n, (ast.Name, ast.Attribute))}
