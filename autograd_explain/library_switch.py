"""The switch of a package by which a value leaves the graph inside it.

`if settings.detach_test_caches.on(): cache = cache.detach()`: a context manager of the package,
which its documentation tells of, has it otherwise.
"""

from __future__ import annotations

import ast
import sys
from functools import lru_cache

from .program import called_name, is_installed, library_source


@lru_cache(maxsize=64)
def switch_around(filename: str, line: int) -> str:
    """The full name of what is asked whether a line of a package runs; "" where nothing is."""
    source = library_source(filename) if is_installed(filename) else None
    for node in () if source is None else source.nodes_from.get(line, ()):
        for around in source.around(node) if source is not None else ():
            if isinstance(around, ast.FunctionDef):
                break
            test = around.test if isinstance(around, ast.If) else None
            inside = test is not None and any(s.lineno <= line for s in around.body)  # type: ignore[attr-defined]
            if inside and isinstance(test, ast.Call) and called_name(test) == "on":
                if isinstance(test.func, ast.Attribute):
                    return _class_of(filename, ast.unparse(test.func.value))
    return ""


def _class_of(filename: str, path: str) -> str:
    """The full name of a context manager that a module calls so."""
    modules = (m for m in [*sys.modules.values()] if getattr(m, "__file__", None) == filename)
    found: object = next(modules, None)
    for part in path.split("."):
        found = getattr(found, part, None)
    manages = isinstance(found, type) and hasattr(found, "__enter__") and hasattr(found, "__exit__")
    return f"{found.__module__}.{found.__qualname__}" if manages and isinstance(found, type) else ""
