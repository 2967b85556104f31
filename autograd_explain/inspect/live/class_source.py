"""The text of classes and functions that live, parsed: a library's too."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any


def parsed(defined: Any) -> ast.Module | None:
    """The tree of a class's or function's source; None where it is not to be had."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(defined)))
    except (OSError, TypeError, SyntaxError):
        return None
