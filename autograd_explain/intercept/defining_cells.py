"""Cells that only define something: nothing in them computes, so autograd cannot fail there."""

from __future__ import annotations

import ast
import sys
from types import ModuleType

_VALUES = (
    ast.Constant, ast.Name, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.Load,
    ast.Store, ast.USub,
)  # fmt: skip
_NOTHING = ModuleType("_nothing")
#: What annotations and base classes are written with.
_TYPES = (*_VALUES, ast.Attribute, ast.Subscript, ast.BinOp, ast.BitOr)


def only_defines(text: str) -> bool:
    """Whether a cell consists of constants, definitions and imports of what is loaded already."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):  # a magic, for instance
        return False
    return all(map(_defines, tree.body))


def _defines(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import):
        return all(alias.name in sys.modules for alias in statement.names)
    if isinstance(statement, ast.ImportFrom):
        held = vars(sys.modules.get(statement.module or "", _NOTHING))
        return not statement.level and all(alias.name in held for alias in statement.names)
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return not statement.decorator_list and _is_plain_signature(statement)
    if isinstance(statement, ast.ClassDef):
        told = statement.decorator_list or statement.keywords
        plain = not told and all(_made_of(base, _TYPES) for base in statement.bases)
        return plain and all(map(_defines, statement.body))
    if isinstance(statement, ast.Assign):
        return all(_made_of(part, _VALUES) for part in (*statement.targets, statement.value))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Pass)


def _is_plain_signature(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    types = [a.annotation for a in arguments if a is not None] + [function.returns]
    defaults = [*given.defaults, *given.kw_defaults]
    return all(_made_of(t, _TYPES) for t in types) and all(_made_of(d, _VALUES) for d in defaults)


def _made_of(expression: ast.expr | None, kinds: tuple[type[ast.AST], ...]) -> bool:
    return expression is None or all(
        isinstance(node, kinds)
        and (not isinstance(node, ast.UnaryOp) or isinstance(node.operand, ast.Constant))
        for node in ast.walk(expression)
    )
