"""The compiled twins of a program's sources."""

from __future__ import annotations

import ast
from types import CodeType

from ....program import Program, Source
from ....set_aside import set_aside
from ..site import Site
from .definitions import Instrument

#: The file name of twin code starts with this: real user code is never called.
TWIN = "<twin of "

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


class Twins:
    """The compiled twins of a program's sources and their sites, shared by its walks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        #: whether something of a long source was left out
        self.partial = False
        self.sites: list[Site] = []
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
