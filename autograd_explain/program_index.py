"""What the user's code says, over all cells and files: calls, definitions, assignments, scopes.

One reader for all questions of the kind "who calls `push`, where is `bank` bound".  Identity comes
before spelling: a class or function that another definition has replaced is not read (see
`live_definitions`), a live function is found by its code object, and only then the name decides.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, ModuleType
from typing import Any, TypeVar

from .arguments import FunctionNode, parameters
from .isolation.type_checks import bases, class_table, is_a
from .live_definitions import Defined, code_of, outlived
from .model import Place
from .program import (
    CLASSES_AND_FUNCTIONS,
    ClassOrFunction,
    Function,
    Program,
    Source,
    called_name,
    first_line,
    own_nodes,
)

N = TypeVar("N", bound=ast.AST)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef)
_FILES = 50  #: followed through imports, those nearest to the cells first


def index_of(program: Program) -> ProgramIndex:
    """The program's one index."""
    known: ProgramIndex | None = program.derived.get(ProgramIndex)
    if known is None:
        known = program.derived[ProgramIndex] = ProgramIndex(program)
    return known


@dataclass(frozen=True, eq=False)
class Definition:
    """A function's source: `node` is its `def` or `lambda`."""

    source: Source
    node: FunctionNode

    @property
    def name(self) -> str | None:
        return getattr(self.node, "name", None)

    @property
    def place(self) -> Place:
        return self.source.place(self.node.lineno, None, None)

    @property
    def returned(self) -> tuple[ast.expr, ...]:
        """The expressions that it returns, in the order of the text."""
        if isinstance(self.node, ast.Lambda):
            return (self.node.body,)
        found = [n for n in own_nodes(self.node) if isinstance(n, ast.Return)]
        return tuple(n.value for n in found if n.value is not None)

    def at(self, node: ast.AST) -> Place:
        """The place of an expression or statement inside."""
        return self.source.place(getattr(node, "lineno", 1), self.name, node)


class ProgramIndex:
    """Questions about the text of one program; get it with `index_of`."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._tables_of_files: dict[str, Mapping[str, Any]] = {}

    # -- where to look -----------------------------------------------------------------------

    @cached_property
    def cells(self) -> tuple[Source, ...]:
        """The cells in the order in which they ran, of equal ones the newest run."""
        newest: dict[tuple[str, str], Source] = {}
        for source in reversed(self.runs):
            newest.setdefault((source.text, source.python), source)
        return tuple(reversed(newest.values()))

    @property
    def runs(self) -> tuple[Source, ...]:
        """The cells in the order in which they ran, one that ran again once more."""
        return self._program.cells

    def runs_of(self, text: str) -> tuple[Source, ...]:
        """The runs of one text, oldest first."""
        return tuple(s for s in self.runs if s.text == text)

    def runs_between(self, first: Source, last: Source) -> tuple[Source, ...] | None:
        """The cells from one run to a later one, both included; None where these are no runs, or
        in the other order."""
        if first not in self.runs or last not in self.runs:
            return None
        start, end = self.runs.index(first), self.runs.index(last)
        return self.runs[start : end + 1] if start <= end else None

    @property
    def files(self) -> tuple[Source, ...]:
        """The user's files: those that the cells import, directly or through others, those in
        which the failure happened, and those in which code of the program was met otherwise.  A
        script stands in the place of the cells and is none of them."""
        found = dict.fromkeys((*self._imports, *self._program.files))
        scripts = {source.filename for source in self.runs if source.cell is None}
        return tuple(source for source in found if source.filename not in scripts)

    @cached_property
    def _imports(self) -> tuple[Source, ...]:
        found: dict[str, Source] = {}
        names = dict.fromkeys(code.co_filename for code in self._program.running)
        running = (self._program.source(name) for name in names)
        pending = [s for s in running if s is not None and s.cell is None]
        pending += [f for s in self.cells for f in self._imported(s)]
        while pending and len(found) < _FILES:
            source = pending.pop(0)
            if source.filename not in found:
                found[source.filename] = source
                pending += self._imported(source)
        return tuple(found.values())

    def namespace(self, source: Source) -> tuple[Source, ...]:
        """The sources whose top levels share their names with this one, oldest first: cells share
        theirs, a file has its own."""
        return (source,) if source.cell is None else self.cells

    def names(self, source: Source) -> Mapping[str, Any]:
        """What the names at a source's top level stand for now."""
        return self._program.names if source.cell is not None else self._tables(source.filename)

    def _imported(self, source: Source) -> list[Source]:
        tables = (_table(sys.modules.get(name)) for name in self._modules(source))
        files = (table.get("__file__") for table in tables)
        found = (self._program.source(file) for file in files if type(file) is str)
        return [s for s in found if s is not None and s.cell is None]

    def _modules(self, source: Source) -> Iterator[str]:
        """The full names under which what a source imports may be a module."""
        package = self._package(source)
        for node in source.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                parts = package[: len(package) - node.level + 1] if node.level else []
                base = ".".join([*parts, *filter(None, [node.module])])
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)

    def _package(self, source: Source) -> list[str]:
        """The package that relative imports in a file start from."""
        for module in list(sys.modules.values()) if source.file else ():
            held = _table(module)
            file, package = held.get("__file__"), held.get("__package__")
            if type(file) is str and file == source.filename and type(package) is str:
                return package.split(".")
        return []

    # -- what lives --------------------------------------------------------------------------

    @cached_property
    def outlived(self) -> frozenset[Defined]:
        """The definitions that newer ones have replaced for good."""
        program = self._program
        if program.origin is not program:  # an edit moves lines; what lives is as before
            return index_of(program.origin).outlived
        defined = [Defined(s.cell, s.file, d.name) for s in self.runs for d in s.definitions]
        known = {s.filename for s in (*self.cells, *self.files)}

        def source_of(code: CodeType) -> Source | None:
            return program.source_of(code) if code.co_filename in known else None

        return outlived(defined, program.names, program.running, source_of)

    @cached_property
    def _skipped(self) -> frozenset[ast.AST]:
        """The nodes of definitions that nothing lives of."""
        return frozenset(
            node
            for s in self.runs if self.outlived
            for d in s.definitions
            if Defined(s.cell, s.file, d.name) in self.outlived
            for node in ast.walk(d)
        )  # fmt: skip

    def lives(self, node: ast.AST) -> bool:
        """Whether a node is not part of a definition that another has replaced."""
        return node not in self._skipped

    # -- what is written ---------------------------------------------------------------------

    def nodes(
        self,
        kind: type[N],
        *,
        naming: tuple[str, ...] = (),
        newest_first: bool = False,
        each_run: bool = False,
    ) -> Iterator[tuple[Source, N]]:
        """The nodes of a kind in all that lives of the program, source by source, files last; with
        `each_run` those of a cell that ran twice come twice.

        With `naming` only sources that use one of these names are parsed.
        """
        cells = self.runs if each_run else self.cells
        for source in (*(reversed(cells) if newest_first else cells), *self.files):
            if naming and source.words.isdisjoint(naming):
                continue
            for node in source.nodes:
                if isinstance(node, kind) and self.lives(node):
                    yield source, node

    def calls(self, *names: str, of: str = "") -> Iterator[tuple[Source, ast.Call]]:
        """The calls of what has one of these (last) names, newest cell first.

        With `of` none that is known to be of the user's own or of another package:
        `calls("checkpoint", of="torch")`.
        """
        for source, call in self.nodes(ast.Call, naming=names, newest_first=True):
            if called_name(call) in names and (not of or self.package(source, call) in (of, None)):
                yield source, call

    def reads(self, attribute: str) -> Iterator[tuple[Source, ast.Attribute]]:
        """Where the program reads an attribute of this name, of whatever object."""
        for source, node in self.nodes(ast.Attribute, naming=(attribute,)):
            if node.attr == attribute and isinstance(node.ctx, ast.Load):
                yield source, node

    def functions(self, name: str) -> list[Definition]:
        """The functions and methods of this name."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [
            Definition(source, node)
            for source, node in self.nodes(ast.stmt, naming=(name,))
            if isinstance(node, kinds) and node.name == name
        ]

    def function(self, name: str) -> Definition | None:
        """The one function of this name: what the name stands for now, else the only one."""
        live = self.definition(self._program.names.get(name))
        found = self.functions(name)
        if live is not None:  # methods have no say in what the name is
            others = [d for d in found if d.node not in d.source.definitions]
            found = [*others, *(d for d in found if d.node is live.node)]
        return found[0] if len(found) == 1 else None

    def called(self, source: Source, call: ast.Call) -> Definition | None:
        """The one function of the user's that a call's name stands for."""
        return None if self.package(source, call) else self.function(called_name(call))

    def calls_of(self, function: str) -> Iterator[tuple[Source, ast.Call]]:
        """The calls of the user's functions of this name, newest cell first."""
        for source, call in self.calls(function):
            if not self.package(source, call):
                yield source, call

    def package(self, source: Source, call: ast.Call) -> str | None:
        """The package that holds what is called ("torch", "numpy"), "" where the user wrote it;
        None where that is not known: `x.detach()`.

        A function around that binds the name decides, then what the name stands for now, then
        what the source imports or defines.
        """
        head, *path = _dotted(call.func)
        for around in (n for n in source.around(call) if isinstance(n, _NAMED)):
            if head in _defined_in(around):
                return None if path else ""
            if head in _local_names(around):
                return self._package_of_method(source, around, head, path)
        live = self.names(source).get(head)
        while path and is_a(live, ModuleType):
            live = _table(live).get(path.pop(0))
        if len(path) == 1 and live is not None:
            return "" if self._has_own(live if is_a(live, type) else type(live), path[0]) else None
        if not path and live is not None and self._is_users(live):
            return ""
        return self._written_package(source, call, live is not None)

    def is_module(self, source: Source, node: ast.expr) -> bool:
        """Whether an expression names a module that lives: `kornia.filters`."""
        head, *path = _dotted(node)
        named = (n for n in source.around(node) if isinstance(n, _NAMED))
        if any(head in _defined_in(n) or head in _local_names(n) for n in named):
            return False
        live = self.names(source).get(head)
        for name in path:
            live = _table(live).get(name) if is_a(live, ModuleType) else None
        return is_a(live, ModuleType)

    def _written_package(self, source: Source, call: ast.Call, lives: bool) -> str | None:
        """By what the source says: an import, or the only definition of a name that is gone."""
        head, *path = _dotted(call.func)
        imports = {local: full for s in self.namespace(source) for local, full in s.imports}
        if head in imports:
            root = imports[head].partition(".")[0]
            file = _table(sys.modules.get(root)).get("__file__")
            return "" if file in {s.filename for s in self.files} else root
        if path or lives:
            return None
        written = any(d.node in d.source.definitions for d in self.functions(head))
        return "" if written or self.classes(head) else None

    def _package_of_method(
        self, source: Source, function: Function, head: str, path: list[str]
    ) -> str | None:
        """ "" for `self.keep(…)` where only the class around has a method of this name."""
        owner = source.parents.get(function)
        if not isinstance(owner, ast.ClassDef) or len(path) != 1:
            return None
        if head not in parameters(function)[:1]:
            return None
        cls = self.names(source).get(owner.name)
        if is_a(cls, type) and self.is_class(cls, owner):
            return "" if self._has_own(cls, path[0]) else None
        own = any(isinstance(n, _NAMED) and n.name == path[0] for n in owner.body)
        return "" if own and not owner.bases else None

    def _tables(self, filename: str) -> Mapping[str, Any]:
        if filename not in self._tables_of_files:
            tables = (_table(module) for module in list(sys.modules.values()))
            found = next((t for t in tables if t.get("__file__") == filename), {})
            self._tables_of_files[filename] = found
        return self._tables_of_files[filename]

    def _has_own(self, cls: type, name: str) -> bool:
        """Whether a class has a method that the user wrote and that overrides no other's."""
        held = [t[name] for base in bases(cls) if name in (t := class_table(base))]
        return bool(held) and all(self.definition(method) is not None for method in held)

    def _is_users(self, value: Any) -> bool:
        """Whether a function or a class stands in the program's text."""
        if not is_a(value, type):
            return self.definition(value) is not None
        table = class_table(value)
        if table.get("__module__") == self._program.names.get("__name__", ""):
            return True
        return any(self.definition(found) is not None for found in table.values())

    def classes(self, name: str) -> list[tuple[Source, ast.ClassDef]]:
        """The classes of this name, the newest first."""
        found = self.nodes(ast.ClassDef, naming=(name,), newest_first=True)
        return [(source, node) for source, node in found if node.name == name]

    def defined(self, name: str, source: Source) -> Iterator[tuple[Source, ClassOrFunction]]:
        """What defines a class or function that a source calls so, the likeliest first: where its
        top level has its names from, newest first, then the files that it may import."""
        own = self.namespace(source)
        for where in (*reversed(own), *(f for f in self.files if f not in own)):
            for node in reversed(where.nodes if name in where.words else ()):
                if isinstance(node, CLASSES_AND_FUNCTIONS) and node.name == name:
                    if self.lives(node):
                        yield where, node

    def assignments(self, target: str) -> Iterator[tuple[Source, ast.Assign]]:
        """The statements `target = …` of every run, in the order in which they stand."""
        for source in (*self.runs, *self.files):
            found = [n for n in source.nodes if isinstance(n, ast.Assign)]
            for node in sorted(found, key=lambda n: n.lineno):
                if any(ast.unparse(t) == target for t in node.targets):
                    if self.lives(node):
                        yield source, node

    def attribute(self, cls: str, name: str) -> Iterator[tuple[Source, ast.Assign]]:
        """The statements `self.name = …` of the classes of a name."""
        for source, node in self.assignments(f"self.{name}"):
            around = (n for n in source.around(node) if isinstance(n, ast.ClassDef))
            if getattr(next(around, None), "name", "") == cls:
                yield source, node

    # -- what a live object is written as ----------------------------------------------------

    def definition(self, function: Any) -> Definition | None:
        """The source of a live function of the user's; None for anything else."""
        code = code_of(function)
        return None if code is None else self.definition_of(code)

    def definition_of(self, code: CodeType) -> Definition | None:
        """The source of a code object of the user's, where only one function can be it."""
        source = self._program.source_of(code)
        found = [] if source is None else functions_of(source.tree, code)
        return Definition(source, found[0]) if source is not None and len(found) == 1 else None

    def method(self, cls: type | None, name: str) -> Definition | None:
        """The source of a class's method as the user wrote it."""
        for owner in bases(cls) if cls is not None else ():
            if name in class_table(owner):
                return self.definition(class_table(owner)[name])
        return None

    def is_class(self, cls: type, node: ast.ClassDef) -> bool:
        """Whether a class or one of its bases is what a `class` statement has made."""
        return any(self._is_made_by(base, node) for base in bases(cls))

    def _is_made_by(self, cls: type, node: ast.ClassDef) -> bool:
        methods = (self.definition(value) for value in class_table(cls).values())
        around = (m.source.parents.get(m.node) for m in methods if m is not None)
        written = next((n for n in around if isinstance(n, ast.ClassDef)), None)
        # Without a method of the user's nothing but the name tells.
        return cls.__name__ == node.name if written is None else written is node


def _table(module: Any) -> Mapping[str, Any]:
    """What a module holds; what is registered as one may be anything."""
    found = object.__getattribute__(module, "__dict__") if is_a(module, ModuleType) else {}
    return found if type(found) is dict else {}


def _dotted(node: ast.expr) -> list[str]:
    """`["torch", "utils", "load"]`; the first is "" where an expression stands there."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id if isinstance(node, ast.Name) else "", *reversed(names)]


def _local_names(function: Function) -> frozenset[str]:
    """The names that a function gives values of its own, but not by an import."""
    bound = (n.id for n in own_nodes(function) if isinstance(n, ast.Name) and _is_store(n))
    return frozenset((*parameters(function), *bound))


def _defined_in(function: Function) -> frozenset[str]:
    """The functions and classes that a function defines inside itself."""
    return frozenset(n.name for n in own_nodes(function) if isinstance(n, CLASSES_AND_FUNCTIONS))


def _is_store(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def functions_of(tree: ast.Module, code: CodeType) -> list[FunctionNode]:
    """The functions of a text that a code object may be of: two lambdas can share a line."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return [n for n in ast.walk(tree) if isinstance(n, kinds) and _is_of(n, code)]


def _is_of(node: FunctionNode, code: CodeType) -> bool:
    line = code.co_firstlineno
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == line
    return code.co_name == node.name and line in (first_line(node), node.lineno)
