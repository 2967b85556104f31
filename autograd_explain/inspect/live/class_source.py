"""The text of classes and functions that live, parsed: a library's too."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType, MethodType
from typing import Any


def parsed(defined: Any) -> ast.Module | None:
    """The tree of a class's or function's source; None where it is not to be had."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(defined)))
    except (OSError, TypeError, SyntaxError):
        return None


def function_node(function: Any) -> ast.FunctionDef | None:
    """The definition of a function or method; None where it is none, or its source is not to be
    had."""
    tree = parsed(function) if isinstance(function, (FunctionType, MethodType)) else None
    node = tree.body[0] if tree is not None and tree.body else None
    return node if isinstance(node, ast.FunctionDef) else None
