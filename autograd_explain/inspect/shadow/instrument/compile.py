"""The compiled twins of a program's sources."""

from __future__ import annotations

import ast
import copy
import linecache
import os
from collections.abc import Sequence
from itertools import chain, islice
from types import CodeType, FunctionType
from typing import Any

from ....program import Program, Source
from ....set_aside import set_aside
from ..site import LibrarySource, Sites
from .definitions import Instrument

#: The file name of twin code starts with this: real user code is never called.
TWIN = "<twin of "
#: That of a library's code, too, with which it begins.
LIBRARY_TWIN = f"{TWIN}library "

#: Lines of a library's file that is read as a whole: each takes up to 0.1 ms.
_LONG = 1_000

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


class Twins:
    """The compiled twins of a program's sources and their sites, shared by its walks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        #: whether something of a long source was left out
        self.partial = False
        _forget_libraries()
        self.sites = Sites(1, LIBRARY_SITES)
        self._codes: dict[tuple[int, bool], tuple[Source, CodeType | None]] = {}

    def code(self, source: Source, definitions_only: bool = False) -> CodeType | None:
        """The twin of a source, or of its definitions and imports; None where it is no Python."""
        key = id(source), definitions_only
        if key not in self._codes:
            self._codes[key] = source, self._compile(source, definitions_only)
        return self._codes[key][1]

    def _compile(self, source: Source, definitions_only: bool) -> CodeType | None:
        try:
            # A tree of our own: the source's is shared, and this one is changed in place.
            tree = ast.parse(source.python)
            aside = set_aside(self._program, source)
            if aside:
                self.partial = True
                tree.body = [s for s in tree.body if not any(a <= s.lineno <= b for a, b in aside)]
            if definitions_only:
                tree.body = [s for s in tree.body if isinstance(s, _DEFINITIONS)]
            twin = Instrument(source, self.sites).module(tree)
            return compile(twin, f"{TWIN}{source.filename}>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, KeyError):
            return None

    def library(self, filename: str) -> LibraryText:
        """The file of an installed package, its functions compiled one by one."""
        return library_text(filename)


class LibraryText:
    """A library's file: of thousands of lines a run comes to a few functions, which are read."""

    def __init__(self, filename: str) -> None:
        text = "".join(linecache.getlines(filename))
        self.source = LibrarySource(None, filename, text, text, filename)
        self._codes: dict[CodeType, CodeType | None] = {}

    def function(self, live: FunctionType) -> CodeType | None:
        """The twin of a live function's code, by the lines that it comes from."""
        code = live.__code__
        if code not in self._codes:
            self._codes[code] = self._compile(live)
        return self._codes[code]

    def _compile(self, live: FunctionType) -> CodeType | None:
        code = live.__code__
        try:
            definition = self._definition(code)
            if definition is None:
                return None
            *outer, _ = getattr(code, "co_qualname", live.__qualname__).split(".")
            reader = Instrument(self.source, LIBRARY_SITES)
            if outer and outer[-1] != "<locals>":
                reader.classes.append(outer[-1])
                reader.functions.append(outer[-1])
            twin = reader.visit(definition)
            if isinstance(twin, ast.FunctionDef):
                twin.name = _MADE  # its own name is a module's variable, or one that it closes over
            body = ast.Return(twin) if isinstance(twin, ast.expr) else twin
            module = ast.fix_missing_locations(_around(body, code.co_freevars))
            made = compile(
                module, f"{LIBRARY_TWIN}{self.source.filename}>", "exec", dont_inherit=True
            )
            found = _inner(_inner(made, _MAKER), getattr(twin, "name", code.co_name))
            return found.replace(co_name=code.co_name)
        except (SyntaxError, ValueError, RecursionError, KeyError):
            return None

    def _definition(
        self, code: CodeType
    ) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
        """A tree of our own of what a code object was compiled from: it is changed in place."""
        lines, start = self.source.python_lines, code.co_firstlineno
        if code.co_name == "<lambda>":
            return self._lambda(code)
        found = _parsed(lines, start) if 0 < start <= len(lines) else None
        if found is None or found.name != code.co_name:
            return None
        found.decorator_list = []
        return found

    def _lambda(self, code: CodeType) -> ast.Lambda | None:
        if len(self.source.python_lines) > _LONG:
            return None
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        found = [
            node
            for node in self.source.nodes_from.get(code.co_firstlineno, ())
            if isinstance(node, ast.Lambda) and names == _parameters(node)
        ]
        return copy.deepcopy(found[0]) if len(found) == 1 else None


#: The files that were read, kept from one run to the next, and the sites in them.
LIBRARY_SITES = Sites(-1)
_TEXTS: dict[tuple[str, int], LibraryText] = {}


def library_text(filename: str) -> LibraryText:
    """The file as it is now; where many were read, all are forgotten."""
    try:
        key = filename, os.stat(filename).st_mtime_ns
    except OSError:
        key = filename, 0
    if key not in _TEXTS:
        _TEXTS[key] = LibraryText(filename)
    return _TEXTS[key]


def _forget_libraries() -> None:
    if len(LIBRARY_SITES) > _MOST_SITES:
        LIBRARY_SITES.clear()
        _TEXTS.clear()


_MOST_SITES = 30_000
_MAKER, _MADE = "_ag_maker", "_ag_made"


def _around(body: ast.stmt, names: Sequence[str]) -> ast.Module:
    """A function that has these variables, so that what is defined in it closes over them."""
    given = [ast.arg(name) for name in names]
    arguments = ast.arguments([], given, None, [], [], None, [])
    maker = ast.FunctionDef(_MAKER, arguments, [body], [])
    setattr(maker, "type_params", [])  # noqa: B010  (Python 3.12 asks for it)
    return ast.Module([maker], [])


def _inner(code: CodeType, name: str) -> CodeType:
    """The code of a function that is defined in a piece of code."""
    inner = (c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
    found = next(inner, None)
    if found is None:
        raise KeyError(name)
    return found


def _parameters(node: ast.Lambda) -> tuple[str, ...]:
    given = node.args
    return tuple(a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs))


def _parsed(lines: Sequence[str], start: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The definition from a line on, its decorators first: up to where it can be read."""
    depth = _indent(lines[start - 1])
    head = "\n" * (start - 1) if not depth else "\n" * (start - 2) + "if 1:\n"
    ends = (n for n in range(start, len(lines)) if _ends(lines[n], depth))
    for end in islice(chain(ends, (len(lines),)), _TRIES):
        try:
            body = ast.parse(head + "\n".join(lines[start - 1 : end])).body
        except SyntaxError:  # decorators, a bracket, or a text that goes on in the first column
            continue
        found: Any = body[0].body[0] if depth and isinstance(body[0], ast.If) else body[0]
        return found if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _ends(line: str, depth: int) -> bool:
    """Whether what began at a depth may end before a line."""
    text = line.lstrip()
    return bool(text) and text[0] not in "#)]}" and len(line) - len(text) <= depth


_TRIES = 12
