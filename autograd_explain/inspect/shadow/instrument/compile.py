"""The compiled twins of a program's sources."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from functools import cached_property
from types import CodeType

from ....program import ClassOrFunction, Program, Source, first_line
from ....set_aside import set_aside
from ..site import LibrarySource, Site
from .definitions import Instrument

#: The file name of twin code starts with this: real user code is never called.
TWIN = "<twin of "
#: That of a library's code, too, with which it begins.
LIBRARY_TWIN = f"{TWIN}library "

Prepare = Callable[[ast.stmt], None]

#: Lines of libraries' files that are read, altogether: each takes up to 0.1 ms.
_LINES = 8_000

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


class Twins:
    """The compiled twins of a program's sources and their sites, shared by its walks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        #: whether something of a long source was left out
        self.partial = False
        self.sites: list[Site] = []
        self._codes: dict[tuple[int, bool], tuple[Source, CodeType | None]] = {}
        self._libraries: dict[str, LibraryText] = {}
        self._lines = _LINES

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

    def library(self, filename: str, prepare: Prepare) -> LibraryText:
        """The file of an installed package, its definitions compiled one by one; `prepare`
        changes each before it is turned."""
        if filename not in self._libraries:
            found = self._libraries[filename] = LibraryText(filename, self.sites, prepare)
            # What is left out is unknown to the run; a shorter file may fit yet.
            found.is_read = len(found.source.python_lines) <= self._lines
            self._lines -= len(found.source.python_lines) * found.is_read
        return self._libraries[filename]


class LibraryText:
    """A library's file: of thousands of lines a run comes to a few functions."""

    def __init__(self, filename: str, sites: list[Site], prepare: Prepare) -> None:
        text = "".join(linecache.getlines(filename))
        self.source = LibrarySource(None, filename, text, text, filename)
        self.is_read = True
        self._sites = sites
        self._prepare = prepare
        self._codes: dict[tuple[str, int], CodeType | None] = {}

    def code(self, name: str, line: int) -> CodeType | None:
        """The twin of the top-level definition of that name, of several the one that begins at
        `line` (0 where that is unknown: the last one)."""
        if (name, line) not in self._codes:
            self._codes[name, line] = self._compile(name, line)
        return self._codes[name, line]

    def _compile(self, name: str, line: int) -> CodeType | None:
        found = [d for d in self._definitions if d.name == name]
        exact = [d for d in found if first_line(d) == line]
        if not found or (line and not exact):
            return None
        try:
            # A tree of our own: this one is changed in place.
            definition = (exact or found)[-1]
            self._prepare(definition)
            twin = Instrument(self.source, self._sites).visit(definition)
            module = ast.fix_missing_locations(ast.Module([twin], []))
            name = f"{LIBRARY_TWIN}{self.source.filename}>"
            return compile(module, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, KeyError):
            return None

    @cached_property
    def _definitions(self) -> tuple[ClassOrFunction, ...]:
        return self.source.definitions if self.is_read else ()
