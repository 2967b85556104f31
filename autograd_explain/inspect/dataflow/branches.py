"""What has run of a function: the rounds of its loops, and the branches that a setting of an object
lets run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from itertools import pairwise, takewhile
from typing import Any

from ...program_index import index_of
from .expression import ExprAt, Scope
from .protocol import Slicing
from .safe_lookup import MISSING
from .scopes import in_empty_loop

_PLAIN = (bool, int, float, str, type(None))
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}


def never_ran(slicer: Slicing, scope: Scope, node: ast.AST, read: ast.AST) -> bool:
    """Whether it stands in a loop that had no round, or in a branch not taken, beside what reads
    it."""
    return in_empty_loop(slicer, scope, node) or _in_branch_not_taken(slicer, scope, node, read)


def _in_branch_not_taken(slicer: Slicing, scope: Scope, node: ast.AST, read: ast.AST) -> bool:
    """Whether it stands in a branch that what reads it does not, and that a setting of an object
    has not let run: `if self.weight:` where that is 0."""
    index = slicer.index(scope.source)
    around = {id(n) for n in index.ancestors(read)}
    inside = (node, *takewhile(lambda n: n is not scope.body, index.ancestors(node)))
    for inner, branch in pairwise(inside):
        if isinstance(branch, ast.If) and id(branch) not in around:
            holds = _holds(slicer, scope, branch.test)
            if holds is not None and inner in (branch.orelse if holds else branch.body):
                return True
    return False


def _holds(slicer: Slicing, scope: Scope, test: ast.expr) -> bool | None:
    """Whether a condition on a setting is met; None for any other."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            held = _holds(slicer, scope, operand)
            return None if held is None else not held
        case ast.Compare(left=asked, ops=[op], comparators=[ast.Constant(value=other)]):
            value, compare = _setting(slicer, scope, asked), _COMPARED.get(type(op))
            try:
                return None if compare is None or value is MISSING else bool(compare(value, other))
            except TypeError:
                return None
    value = _setting(slicer, scope, test)
    return None if value is MISSING else bool(value)


def _setting(slicer: Slicing, scope: Scope, node: ast.expr) -> Any:
    """A plain value that an object got from its constructor and keeps; else MISSING."""
    value = slicer.value(ExprAt(scope, node)) if isinstance(node, ast.Attribute) else MISSING
    if type(value) not in _PLAIN or _is_set_later(slicer, node):
        return MISSING
    return value


def _is_set_later(slicer: Slicing, attribute: ast.expr) -> bool:
    """Whether the program, or `train()`, gives an attribute of this name another value."""
    name = getattr(attribute, "attr", "")
    for source, node in index_of(slicer.program).nodes(ast.Attribute, naming=(name,)):
        if node.attr == name and not isinstance(node.ctx, ast.Load):
            function = source.function_around(node)
            if function is None or function.name != "__init__":
                return True
    return name == "training"
