"""The compiled twins of a program's sources."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Sequence
from itertools import chain, islice
from types import CodeType

from ....program import CLASSES_AND_FUNCTIONS, ClassOrFunction, Program, Source, first_line
from ....set_aside import set_aside
from ..site import LibrarySource, Site
from .definitions import Instrument

#: The file name of twin code starts with this: real user code is never called.
TWIN = "<twin of "
#: That of a library's code, too, with which it begins.
LIBRARY_TWIN = f"{TWIN}library "

Prepare = Callable[[ast.stmt], None]

#: Lines of a library's file that is read as a whole: each takes up to 0.1 ms.
_LONG = 1_000

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
            self._libraries[filename] = LibraryText(filename, self.sites, prepare)
        return self._libraries[filename]


class LibraryText:
    """A library's file: of thousands of lines a run comes to a few functions, which are read."""

    def __init__(self, filename: str, sites: list[Site], prepare: Prepare) -> None:
        text = "".join(linecache.getlines(filename))
        self.source = LibrarySource(None, filename, text, text, filename)
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
        try:
            # A tree of our own: this one is changed in place.
            definition = self._definition(name, line)
            if definition is None:
                return None
            self._prepare(definition)
            twin = Instrument(self.source, self._sites).visit(definition)
            module = ast.fix_missing_locations(ast.Module([twin], []))
            name = f"{LIBRARY_TWIN}{self.source.filename}>"
            return compile(module, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, KeyError):
            return None

    def _definition(self, name: str, line: int) -> ClassOrFunction | None:
        """The one that is asked for, read alone."""
        written = re.compile(rf"(async\s+)?(def|class)\s+{re.escape(name)}\b")
        lines = self.source.python_lines
        found = [n for n, text in enumerate(lines, 1) if name in text and written.match(text)]
        starts = {_start(lines, n): n for n in found}
        start = line if line in starts else max(starts, default=0) * (not line)
        if start:
            return _parsed(lines, start, starts[start])
        if len(lines) > _LONG:
            return None
        # One that stands in a branch or a block.
        inner = [d for d in self.source.definitions if d.name == name]
        exact = [d for d in inner if first_line(d) == line]
        fitting = exact if line else inner
        return fitting[-1] if fitting else None


def _start(lines: Sequence[str], line: int) -> int:
    """The line of the first decorator of a top-level definition."""
    found = line
    for number in range(line - 1, 0, -1):
        text = lines[number - 1]
        if text.startswith("@"):
            found = number
        elif not text.strip() or not text.startswith((" ", "\t", "#", ")")):
            break
    return found


def _parsed(lines: Sequence[str], start: int, named: int) -> ClassOrFunction | None:
    """The definition from a line on, `named` in a later one: up to where it can be read."""
    ends = (n for n in range(named, len(lines)) if lines[n][:1] not in _GOES_ON)
    for end in islice(chain(ends, (len(lines),)), _TRIES):
        try:
            found = ast.parse("\n".join(lines[start - 1 : end])).body[0]
        except SyntaxError:  # a text in it goes on in the first column
            continue
        ast.increment_lineno(found, start - 1)
        return found if isinstance(found, CLASSES_AND_FUNCTIONS) else None
    return None


#: What a line of a definition's body begins with; one that closes its brackets, too.
_GOES_ON = frozenset(("", " ", "\t", "#", ")", "]", "}"))
_TRIES = 8
