"""The source that ran: cells in the order they ran, and the user's own files.

Rewriting and attribution work on text, so the text is kept as it *ran*: two equal cells may
share a file name (ipykernel names a cell's file by a hash of its text), and a cell edited
after its run is not what failed.
"""

from __future__ import annotations

import ast
import linecache
import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from .model import Place, Span


@dataclass(frozen=True)
class Source:
    """A piece of the user's source: a cell (`cell` is its execution count) or a file.

    `text` is what the user typed.  `python` is what was compiled (magics and `!` lines
    translated); line `n` of `python` is line `n + offset` of `text`.  `filename` is what the
    code objects carry.  `history` is false for a run outside IPython's history, which shares its
    number with the cell that gets it next, or with the one that ran it.
    """

    cell: int | None
    file: str | None
    text: str
    python: str
    filename: str
    offset: int = 0
    history: bool = True

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed `python`; an empty module where it does not parse."""
        try:
            return ast.parse(self.python)
        except (SyntaxError, ValueError, RecursionError):
            return ast.Module(body=[], type_ignores=[])

    @cached_property
    def lines(self) -> tuple[str, ...]:
        return tuple(self.text.splitlines())

    def place(self, line: int, function: str | None = None, node: ast.AST | None = None) -> Place:
        """The place of line `line` of `python` (as a frame or an AST node reports it)."""
        shown = line + self.offset
        text = self.lines[shown - 1] if 0 < shown <= len(self.lines) else ""
        indent = len(text) - len(text.lstrip())
        return Place(self.cell, self.file, shown, text.strip(), function, self.span(node), indent)

    def function_at(self, place: Place) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function whose lines hold a place of this source."""
        line = place.line - self.offset
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        return max(found, key=lambda node: node.lineno, default=None)

    def span(self, node: ast.AST | None) -> Span | None:
        """The range of an AST node of `tree`, in lines of `text` and character columns."""
        line, end_line = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if node is None or line is None or end_line is None:
            return None
        python = self.python.splitlines()
        return Span(
            line + self.offset,
            _characters(python[line - 1], getattr(node, "col_offset", 0)),
            end_line + self.offset,
            _characters(python[end_line - 1], getattr(node, "end_col_offset", 0)),
        )


def called_name(node: ast.AST) -> str:
    """The last name of what a call calls: `SGD` of `torch.optim.SGD(…)`; "" for anything else."""
    function = getattr(node, "func", None)
    return str(getattr(function, "attr", getattr(function, "id", "")))


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions and classes inside it, in text order."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from own_nodes(child)


def _characters(line: str, utf8_column: int) -> int:
    """`ast` counts columns in UTF-8 bytes; users and editors count characters."""
    return len(line.encode()[:utf8_column].decode(errors="ignore"))


class Program:
    """Every cell that ran, oldest first, and the user's files that their code lives in."""

    def __init__(self, cells: Iterable[Source] = ()) -> None:
        self.cells = tuple(cells)
        self._files: dict[str, Source | None] = {}

    def cell(self, number: int | None) -> Source | None:
        """The cell In[number], or None."""
        return next((c for c in reversed(self.cells) if c.cell == number), None)

    def source(self, filename: str) -> Source | None:
        """The user's source behind a code object's file name; None for library code.

        The newest cell wins where several cells share one name.
        """
        found = next((c for c in reversed(self.cells) if c.filename == filename), None)
        if found is not None:
            return found
        if filename not in self._files:
            self._files[filename] = _read_file(filename)
        return self._files[filename]

    def source_at(self, place: Place) -> Source | None:
        """The source that holds a place."""
        return self.cell(place.cell) if place.cell is not None else self.source(place.file or "")

    def place(self, filename: str, line: int, function: str | None = None) -> Place | None:
        """The place of a frame's file and line; None for library code."""
        source = self.source(filename)
        # IPython 7.34 names a cell's top level "<cell line: 3>".
        top = function is None or function.startswith(("<module>", "<cell line:"))
        name = None if top else function
        return None if source is None else source.place(line, name)

    def is_user_code(self, filename: str) -> bool:
        return self.source(filename) is not None


def _read_file(filename: str) -> Source | None:
    path = os.path.abspath(filename)
    if not path.endswith(".py") or is_library(path) or not os.path.isfile(path):
        return None
    text = "".join(linecache.getlines(filename))
    return Source(None, path, text, text, filename) if text else None


@cache
def _library_roots() -> tuple[str, ...]:
    paths = {*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()}
    # `scripts` and `data` are bin/ and the prefix itself, which may hold the user's project.
    paths -= {sysconfig.get_path("scripts"), sysconfig.get_path("data")}
    paths |= {p for p in sys.path if _holds_packages(p)}
    return tuple(os.path.join(os.path.abspath(p), "") for p in paths)


def _holds_packages(folder: str) -> bool:
    """Whether pip installed into this folder (`--target`); an editable project has no dist-info."""
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder or "."))
    except OSError:
        return False


def is_library(path: str) -> bool:
    """Whether a file belongs to Python, to an installed package or to this package."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
    return path.startswith((*_library_roots(), own)) or bool(_PACKAGES.intersection(_parts(path)))


_PACKAGES = frozenset({"site-packages", "dist-packages"})


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").split("/")
