"""The source that ran: cells in the order they ran, and the user's own files.

Rewriting and attribution work on text, so the text is kept as it *ran*: two equal cells may
share a file name (ipykernel names a cell's file by a hash of its text), and a cell edited
after its run is not what failed.
"""

from __future__ import annotations

import ast
import linecache
import os
import re
import site
import sys
import sysconfig
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import islice
from types import CodeType, MappingProxyType, ModuleType
from typing import Any, TypeAlias, TypeGuard, overload

from .loaded import is_generated, is_loaded, is_text_of
from .model import Place, Span, lines_of

_WORD = re.compile(r"[^\W\d]\w*")
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef)
CLASSES_AND_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_DEFINING = (*CLASSES_AND_FUNCTIONS, ast.Lambda)
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
ClassOrFunction: TypeAlias = Function | ast.ClassDef
Located: TypeAlias = ast.expr | ast.stmt | ast.keyword | ast.arg


@dataclass(frozen=True)
class Source:
    """A piece of the user's source: a cell (`cell` is its execution count) or a file.

    `text` is what the user typed.  `python` is what was compiled (magics and `!` lines
    translated); line `n` of `python` is line `n + offset` of `text`.  `filename` is what the
    code objects carry.  `history` is false for a run outside IPython's history, which shares its
    number with the cell that gets it next, or with the one that ran it.  `changed` says that the
    text that ran is not to be had: a file that was edited since; `text` and `python` are empty.
    """

    cell: int | None
    file: str | None
    text: str
    python: str
    filename: str
    offset: int = 0
    history: bool = True
    changed: bool = False

    @property
    def unreadable(self) -> Source:
        """The same source where its text is not the one that ran."""
        return replace(self, text="", python="", changed=True)

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed `python`; an empty module where it does not parse."""
        try:
            return ast.parse(self.python)
        except (SyntaxError, ValueError, RecursionError):
            return ast.Module(body=[], type_ignores=[])

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of `tree`, as `ast.walk` gives them: outer ones first."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def nodes_from(self) -> Mapping[int, Sequence[ast.expr | ast.stmt]]:
        """The expressions and statements that begin on each line, outer ones first."""
        found: dict[int, list[ast.expr | ast.stmt]] = {}
        for node in self.nodes:
            if isinstance(node, (ast.expr, ast.stmt)):
                found.setdefault(node.lineno, []).append(node)
        return found

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def definitions(self) -> tuple[ClassOrFunction, ...]:
        """The classes and functions defined at its top level, branches and blocks included."""
        return tuple(n for n in own_nodes(self.tree) if isinstance(n, CLASSES_AND_FUNCTIONS))

    @cached_property
    def functions(self) -> tuple[tuple[Function, frozenset[str]], ...]:
        """Every function with a name, and the variables that occur in it or in what it holds."""
        found = [node for node in self.nodes if isinstance(node, _NAMED)]
        return tuple((node, frozenset(_variables(node))) for node in found)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name that its code uses, and the words of its strings and comments."""
        return frozenset(_WORD.findall(unicodedata.normalize("NFKC", self.python)))

    @cached_property
    def bound(self) -> frozenset[str]:
        """Every name that is bound somewhere in its code."""
        return frozenset(name for node in ast.walk(self.tree) for name in _bound_by(node))

    @cached_property
    def imports(self) -> tuple[tuple[str, str], ...]:
        """Local name and full name of everything that it imports, in the order of the text."""
        return tuple(_imports(self.tree))

    @cached_property
    def lines(self) -> tuple[str, ...]:
        return tuple(lines_of(self.text))

    @cached_property
    def python_lines(self) -> tuple[str, ...]:
        return tuple(lines_of(self.python))

    def place(
        self,
        line: int,
        function: str | None = None,
        node: ast.AST | None = None,
        column: int | None = None,
    ) -> Place:
        """The place of line `line` of `python` (as a frame or an AST node reports it); `column`,
        in UTF-8, tells statements apart that stand side by side where there is no node."""
        shown, span = line + self.offset, self.span(node)
        text = self.lines[shown - 1] if 0 < shown <= len(self.lines) else ""
        column = getattr(node, "col_offset", column) if span and span.line == shown else column
        start, end = self._statement_in(line, column) if ";" in text else (0, len(text))
        indent = start + len(text[start:]) - len(text[start:].lstrip())
        source = text[start:end].strip()
        return Place(self.cell, self.file, shown, source, function, span, indent, self.changed)

    def _statement_in(self, line: int, column: int | None) -> tuple[int, int]:
        """Of statements side by side on a line of `python` the characters of the one at a column;
        the whole line where there is one only, or it is not known which."""
        text = self.lines[line + self.offset - 1]
        side_by_side = [n for n in self.nodes if _is_simple(n) and n.lineno <= line <= _end(n)]
        if column is None or len(side_by_side) < 2 or text != self.python_lines[line - 1]:
            return 0, len(text)
        for node in side_by_side:
            start = node.col_offset if node.lineno == line else 0
            end = node.end_col_offset if node.end_lineno == line else None
            if start <= column < (len(text.encode()) if end is None else end):
                return _characters(text, start), len(text) if end is None else _characters(
                    text, end
                )
        return 0, len(text)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, innermost first."""
        while (outer := self.parents.get(node)) is not None:
            yield outer
            node = outer

    def function_around(self, node: ast.AST) -> Function | None:
        """The innermost function with a name that a node stands in."""
        return next((n for n in self.around(node) if isinstance(n, _NAMED)), None)

    def function_at(self, place: Place) -> Function | None:
        """The innermost function whose lines hold a place of this source."""
        line = place.line - self.offset
        found = [
            node
            for node in self.nodes
            if isinstance(node, _NAMED) and node.lineno <= line <= _end(node)
        ]
        return max(found, key=lambda node: node.lineno, default=None)

    def statement_at(self, line: int, column: int | None = None) -> ast.stmt | None:
        """The innermost statement on a line of `python`; of several side by side the one that holds
        a column of the line in `text`, else the last."""
        found: ast.stmt | None = None
        held = False
        for node in self.nodes:
            if isinstance(node, ast.stmt) and node.lineno <= line <= _end(node):
                here = column is not None and self._holds(node, line + self.offset, column)
                shorter = found is None or _end(node) - node.lineno <= _end(found) - found.lineno
                if (here, shorter) >= (held, True):
                    found, held = node, here
        return found

    def _holds(self, node: ast.AST, line: int, column: int) -> bool:
        span = self.span(node)
        return span is not None and span.holds(Span(line, column, line, column))

    def column_of(self, place: Place) -> int | None:
        """The column of what a place of this source means on its line; None where that is all of
        the line."""
        if place.span is not None and place.span.line == place.line:
            return place.span.column
        lines = self.lines
        whole = lines[place.line - 1].strip() if place.line <= len(lines) else place.source
        return None if place.source in ("", whole) else place.indent

    def node_of(self, columns: tuple[int, int, int, int] | None) -> ast.expr | ast.stmt | None:
        """The outermost expression, else statement, of `tree` with exactly this range: first and
        last line and column, as Python counts them for a frame (None: it does not, as 3.10)."""
        begun = () if columns is None else self.nodes_from.get(columns[0], ())
        found = [
            n for n in begun if (n.lineno, n.end_lineno, n.col_offset, n.end_col_offset) == columns
        ]
        return next((n for n in found if isinstance(n, ast.expr)), found[0] if found else None)

    @overload
    def span(self, node: Located) -> Span: ...
    @overload
    def span(self, node: ast.AST | None) -> Span | None: ...
    def span(self, node: ast.AST | None) -> Span | None:
        """The range of an AST node of `tree`, in lines of `text` and character columns."""
        line, end_line = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if node is None or line is None or end_line is None:
            return None
        python = self.python_lines
        return Span(
            line + self.offset,
            _characters(python[line - 1], getattr(node, "col_offset", 0)),
            end_line + self.offset,
            _characters(python[end_line - 1], getattr(node, "end_col_offset", 0)),
        )

    @overload
    def segment(self, node: Located) -> str: ...
    @overload
    def segment(self, node: ast.AST) -> str | None: ...
    def segment(self, node: ast.AST) -> str | None:
        """The text of an AST node of `tree`; `ast.get_source_segment` cuts a long text into
        lines each time."""
        span = self.span(node)
        if span is None:
            return None
        lines = [*self.python_lines[span.line - self.offset - 1 : span.end_line - self.offset]]
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.column :]
        return "\n".join(lines)


def _variables(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names


def called_name(node: ast.AST | None) -> str:
    """The last name of what a call calls: `SGD` of `torch.optim.SGD(…)`; "" for anything else."""
    return last_name(getattr(node, "func", None))


def last_name(node: ast.AST | None) -> str:
    """`weight` of `net[0].weight` and of `weight`; "" for what has no name."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def expression_of(text: str) -> ast.expr | None:
    """The parsed expression; None where the text is none."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def blocks(node: ast.AST | None) -> Iterator[list[ast.stmt]]:
    """The blocks of statements that a node holds; those of its handlers are the handlers'."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions and classes inside it, in text order."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, _DEFINING):
            yield from own_nodes(child)


def is_literal(node: ast.expr) -> bool:
    """Whether it is a constant, or a sign and one: `-1.0`."""
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def is_text(statement: ast.stmt) -> bool:
    """Whether it is a constant alone, as a docstring is."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def first_line(node: ClassOrFunction) -> int:
    """The line of a definition's first decorator, or its own: what its code object says."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _is_simple(node: ast.AST) -> TypeGuard[ast.stmt]:
    """Whether it is a statement that holds no others."""
    return isinstance(node, ast.stmt) and not hasattr(node, "body") and not hasattr(node, "cases")


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _characters(line: str, utf8_column: int) -> int:
    """`ast` counts columns in UTF-8 bytes; users and editors count characters."""
    return len(line.encode()[:utf8_column].decode(errors="ignore"))


_NO_NAMES: Mapping[str, Any] = MappingProxyType({})


class Program:
    """Every cell that ran, oldest first, and the user's files that their code lives in.

    `names` is the namespace of the cells as it is now, `running` the code of a failure's frames:
    what tells the code that lives from text that something else has replaced.  `stops` are the
    file names and lines of these frames, where they are known.
    """

    def __init__(
        self,
        cells: Iterable[Source] = (),
        names: Mapping[str, Any] = _NO_NAMES,
        running: Iterable[CodeType] = (),
        stops: Iterable[tuple[str, int]] = (),
    ) -> None:
        self.cells = tuple(cells)
        self.names = names
        self.running = tuple(running)
        self.stops = tuple(stops)
        #: The program as it ran; an edited one says which.
        self.origin: Program = self
        #: What was computed from this program, by who computes it: kept as long as it.
        self.derived: dict[object, Any] = {}
        self._files: dict[str, Source | None] = {}
        self._readable: dict[str, Source] = {}
        # By identity, the code object kept alive: equal ones may differ in their lines.
        self._compiled: dict[int, tuple[CodeType, Source | None]] = {}

    @property
    def files(self) -> tuple[Source, ...]:
        """The user's files that were asked for so far, as far as they have a text."""
        known = (self.source(name) for name, file in [*self._files.items()] if file is not None)
        return tuple(s for s in known if s is not None and not s.changed)

    def cell(self, number: int | None) -> Source | None:
        """The cell In[number], or None."""
        return next((c for c in reversed(self.cells) if c.cell == number), None)

    @property
    def is_notebook(self) -> bool:
        """Whether it consists of cells."""
        return any(source.cell is not None for source in self.cells)

    def at(self, frames: Iterable[CodeType], stops: Iterable[tuple[str, int]] = ()) -> Program:
        """The same program, failing in code that it runs now."""
        return Program(self.cells, self.names, frames, stops)

    def until(self, number: int) -> Program:
        """The program up to In[number]: what ran later says nothing about a failure there."""
        cells = (c for c in self.cells if c.cell is not None and c.cell <= number)
        return Program(cells, self.names, self.running, self.stops)

    def source(self, filename: str) -> Source | None:
        """The user's source behind a code object's file name; None for library code.

        The newest cell wins where several cells share one name.  A file that was changed after it
        had been loaded has no text.
        """
        found = self.present(filename)
        if found is None or found.cell is not None:
            return found
        if filename not in self._readable:
            loaded = is_loaded(found.text, found.file or "")
            self._readable[filename] = found if loaded else found.unreadable
        return self._readable[filename]

    def source_of(self, code: CodeType) -> Source | None:
        """The user's source that a code object was compiled from, without its text where that is
        another one now; None for library code and for what torch.compile made."""
        if id(code) not in self._compiled:
            self._compiled[id(code)] = code, self._source_of(code)
        return self._compiled[id(code)][1]

    def _source_of(self, code: CodeType) -> Source | None:
        found = None if is_generated(code) else self.present(code.co_filename)
        if found is None or found.cell is not None or is_text_of(found.text, code):
            return found
        return found.unreadable

    def present(self, filename: str) -> Source | None:
        """A cell, or a file as it is now."""
        found = next((c for c in reversed(self.cells) if c.filename == filename), None)
        if found is not None:
            return found
        if filename not in self._files:
            self._files[filename] = _read_file(filename)
        return self._files[filename]

    def source_at(self, place: Place | None) -> Source | None:
        """The source that holds a place."""
        if place is None:
            return None
        return self.cell(place.cell) if place.cell is not None else self.source(place.file or "")

    def statement_at(self, place: Place | None) -> ast.stmt | None:
        """The innermost statement on a place's line; of several side by side the one meant."""
        source = self.source_at(place)
        if place is None or source is None:
            return None
        return source.statement_at(place.line - source.offset, source.column_of(place))

    def expression_at(self, place: Place | None) -> ast.expr | None:
        """The expression with exactly the range of a place, the outermost of equal ones."""
        source = self.source_at(place)
        if place is None or source is None or place.span is None:
            return None
        nodes = source.nodes_from.get(place.span.line - source.offset, ())
        same = (n for n in nodes if isinstance(n, ast.expr) and source.span(n) == place.span)
        return next(same, None)

    def place(self, filename: str, line: int, function: str | None = None) -> Place | None:
        """The place of a file's line; None for library code."""
        return _place(self.source(filename), line, function)

    def place_of(self, code: CodeType, line: int, instruction: int = -1) -> Place | None:
        """The place of a frame's code object and line; None for library code."""
        column = _column(code, instruction, line)
        return _place(self.source_of(code), line, code.co_name, column)

    def is_user_code(self, filename: str) -> bool:
        return self.present(filename) is not None


def _place(
    source: Source | None, line: int, function: str | None, column: int | None = None
) -> Place | None:
    # IPython 7.34 names a cell's top level "<cell line: 3>".
    top = function is None or function.startswith(("<module>", "<cell line:"))
    known = None if top else function
    return None if source is None else source.place(line, known, column=column)


def _column(code: CodeType, instruction: int, line: int) -> int | None:
    """Where an instruction's expression begins on a line; None before Python 3.11."""
    positions = getattr(code, "co_positions", None)
    if positions is None or instruction < 0:
        return None
    first, _, column, _ = next(islice(positions(), instruction // 2, None), (None,) * 4)
    return column if first == line else None


def _read_file(filename: str) -> Source | None:
    path = os.path.abspath(filename)
    if not path.endswith(".py") or is_library(path) or not os.path.isfile(path):
        return None
    text = "".join(linecache.getlines(filename))
    return Source(None, path, text, text, filename) if text else None


def library_source(filename: str) -> Source:
    """A file of an installed package; what it is parsed to is kept for the next question."""
    return _of_library(filename, "".join(linecache.getlines(filename)))


@lru_cache(maxsize=4)
def _of_library(filename: str, text: str) -> Source:
    return Source(None, filename, text, text, filename)


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
    """Whether a file belongs to Python, to an installed package or to this package, or was written
    by one as it ran."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
    if path.startswith((*_library_roots(), own)) or _PACKAGES.intersection(_parts(path)):
        return True
    return os.path.dirname(path) == tempfile.gettempdir() and _is_temporary(path)


@cache
def _is_temporary(path: str) -> bool:
    """Whether a module was imported from a temporary file that has another name: torch_geometric
    writes the `propagate` of each of its layers so (torch_geometric/template.py, 2.8)."""
    modules = [m for m in list(sys.modules.values()) if isinstance(m, ModuleType)]
    named = [m.__name__ for m in modules if vars(m).get("__file__") == path]
    stem = os.path.splitext(os.path.basename(path))[0]
    return any(stem != name and stem.startswith(name) for name in named)


def is_installed(path: str) -> bool:
    """Whether a file belongs to an installed package that is neither Python's nor this one."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
    if path.startswith(own) or not is_library(path):
        return False
    return bool(_PACKAGES.intersection(_parts(path))) or not path.startswith(_standard_roots())


def is_of_package(kind: type) -> bool:
    """Whether a class comes with an installed package other than torch."""
    module = str(kind.__module__)
    path = vars(sys.modules.get(module, sys)).get("__file__")
    own = module.partition(".")[0] == "torch" or not isinstance(path, str)
    return not own and is_installed(str(path))


@cache
def _standard_roots() -> tuple[str, ...]:
    paths = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    return tuple(os.path.join(os.path.abspath(p), "") for p in paths)


_PACKAGES = frozenset({"site-packages", "dist-packages"})


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").split("/")


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    else:  # definitions, handlers of exceptions, patterns
        names = (getattr(node, field, None) for field in ("name", "rest"))
        yield from (name for name in names if isinstance(name, str))
