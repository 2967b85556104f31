"""Whether a text is the one that code objects were compiled from.

Python keeps line numbers, no text.  After an edit of a module the lines of code that runs point
into a text that is gone, and `%autoreload 2` numbers a function's lines from the function's own
first one (IPython 9).  So a text counts only where compiling it gives the code object again.
"""

from __future__ import annotations
import __future__ as future

import ast
import os
import sys
import tokenize
from collections.abc import Iterator
from functools import cached_property, lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

_FUTURE = 0
for _name in future.all_feature_names:
    _FUTURE |= getattr(future, _name).compiler_flag
_FIELDS = ("co_name", "co_qualname", "co_firstlineno", "co_argcount", "co_code", "co_names")
_NAMES = ("co_varnames", "co_freevars", "co_cellvars")
#: The local names of what pytest makes of an `assert`; the lines stay those of the text.
_ASSERTION = "@py_"


def is_text_of(text: str, code: CodeType) -> bool:
    """Whether compiling `text` gives this code object, line for line."""
    if any(name.startswith(_ASSERTION) for name in code.co_varnames):
        return True
    codes = _codes(text, code.co_flags & _FUTURE)
    found = codes.get((code.co_name, code.co_firstlineno), ())
    if any(_same(code, other) for other in found):
        return True
    return code.co_name == "<module>" and any(
        _same(code, other) for other in _bodies(text, code.co_flags & _FUTURE)
    )


def is_loaded(text: str, filename: str) -> bool:
    """Whether the functions of the module loaded from a file are those of `text`; True where no
    module is."""
    codes = [c for module in _modules(filename) for c in _codes_of(module, filename)]
    return all(is_text_of(text, code) for code in codes)


def is_on_disk(path: str, text: str) -> bool:
    """Whether a file still has this text."""
    try:
        with tokenize.open(path) as file:
            found = file.read()
            return text in (found, f"{found}\n")  # linecache ends the last line
    except (OSError, SyntaxError, UnicodeDecodeError):
        return False


def is_generated(code: CodeType) -> bool:
    """Whether torch.compile made it: it carries the name of the user's function, and its lines
    are not those of what it does."""
    made = getattr(sys.modules.get("torch._dynamo.convert_frame"), "output_codes", None)
    return made is not None and code in made


@lru_cache(maxsize=64)
def _codes(text: str, flags: int) -> dict[tuple[str, int], list[CodeType]]:
    """Every code object of a text, by name and first line: a long file has many `__init__`."""
    found: dict[tuple[str, int], list[CodeType]] = {}
    try:
        waiting = [compile(text, "<text>", "exec", flags, True)]
    except (SyntaxError, ValueError, RecursionError):
        return found
    while waiting:
        code = waiting.pop()
        found.setdefault((code.co_name, code.co_firstlineno), []).append(code)
        waiting.extend(c for c in code.co_consts if isinstance(c, CodeType))
    return found


@lru_cache(maxsize=64)
def _bodies(text: str, flags: int) -> list[CodeType]:
    """What is compiled of a text where each function is a cell, as marimo's are: a body that stands
    for itself, without its `return`, its last expression by itself."""
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError):
        return []
    found: list[CodeType] = []
    for function in nodes:
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = [s for s in function.body if not isinstance(s, ast.Return)]
            parts: list[ast.Module | ast.Expression] = [ast.Module(body, [])]
            if body and isinstance(body[-1], ast.Expr):
                parts += [ast.Module(body[:-1], []), ast.Expression(body[-1].value)]
            found += [code for part in parts if (code := _compiled(part, flags)) is not None]
    return found


def _compiled(part: ast.Module | ast.Expression, flags: int) -> CodeType | None:
    mode = "exec" if isinstance(part, ast.Module) else "eval"
    try:
        return cast(CodeType, compile(part, "<text>", mode, flags, True))
    except (SyntaxError, ValueError):
        return None  # of a generator, say


def _same(first: CodeType, second: CodeType) -> bool:
    """As `==`, which looks at the file name's flags too and, before Python 3.12, not at lines."""
    if any(getattr(first, f, "") != getattr(second, f, "") for f in (*_FIELDS, *_NAMES)):
        return False
    if [*first.co_lines()] != [*second.co_lines()]:
        return False
    if len(first.co_consts) != len(second.co_consts):
        return False
    return all(map(_same_constant, first.co_consts, second.co_consts))


def _same_constant(first: Any, second: Any) -> bool:
    if isinstance(first, CodeType) and isinstance(second, CodeType):
        return _same(first, second)
    return type(first) is type(second) and repr(first) == repr(second)


def _modules(filename: str) -> Iterator[ModuleType]:
    for module in list(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(file, str) and file and os.path.abspath(file) == filename:
            yield module


def _codes_of(module: ModuleType, filename: str) -> Iterator[CodeType]:
    """The code of a module's functions and methods, as far as it is reached without running any."""
    waiting: list[Any] = list(vars(module).values())
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type) and value.__module__ == module.__name__:
            waiting.extend(vars(value).values())
        elif isinstance(value, (staticmethod, classmethod)):
            waiting.append(value.__func__)
        elif isinstance(value, property):
            waiting.extend((value.fget, value.fset, value.fdel))
        elif isinstance(value, cached_property):
            waiting.append(value.func)
        elif isinstance(value, FunctionType):
            waiting.append(value.__dict__.get("__wrapped__"))
            if os.path.abspath(value.__code__.co_filename) == filename:
                yield value.__code__
