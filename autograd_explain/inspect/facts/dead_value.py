"""A value computed of what is to get a gradient, and the one beside it that the result reads.

`pos_def = pos @ deform` depends on the strain, and `energy = model(pos)` reads `pos`: nothing reads
`pos_def`, or only its shape.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeAlias

import torch

from ...isolation.type_checks import is_a
from ...model import Place
from ...program import Source
from ..dataflow import ExprAt
from ..dataflow.cut_kinds import is_about_shape
from ..dataflow.expression import Scope
from ..dataflow.reaching_definitions import FUNCTIONS, key_of
from ..dataflow.syntax import statements_of
from ..scene import Scene

_MOST = 2000  #: statements that are looked at
_MOST_DERIVED = 100  #: values computed of an input, of which one may be dead
_MOST_READS = 20  #: of one value


@dataclass(frozen=True, eq=False)
class DeadValue:
    """`name` was computed at `made`; `read` is where the result reads `original` in its place."""

    name: str
    original: str
    made: ExprAt
    read: ExprAt

    def place(self, scene: Scene) -> Unread:
        """The same without anything live."""
        return Unread(self.name, scene.slicer.place(self.made), scene.slicer.place(self.read))


class Unread(NamedTuple):
    """A value that nothing reads, where it is made, and where another is read in its place."""

    name: str
    made: Place
    read: Place


@dataclass(frozen=True, eq=False)
class _Definition:
    """What a statement gives one name."""

    at: int
    source: Source
    name: str
    value: ast.expr
    reads: tuple[ast.Name, ...]


#: A name that is read, and what had given it its value.
_Origin: TypeAlias = tuple[str, _Definition | None]
#: A value, and what had given the original its value.
_Found: TypeAlias = tuple[DeadValue, _Definition | None]


def dead_values(
    scene: Scene, root: ExprAt, keys: Iterable[str]
) -> tuple[str, tuple[DeadValue, ...]]:
    """The first of the names in the scope of a result that values depend on each of which stands
    beside one of the same form that the result was computed from, all read in one statement, and
    these values; "" and () where any of this is not sure."""
    made = _Definitions(scene, root.scope)
    for key in keys:
        derived = made.derived_from(key)
        if len(derived) > _MOST_DERIVED or all(made.is_read(d.name) for d in derived):
            continue
        reads = made.behind(root.node)
        if not any(d in derived for d in {*reads.values()}):
            if found := _together(scene, made, list(_nearest(made, _beside(made, derived, reads)))):
                return key, found
    return "", ()


def _together(scene: Scene, made: _Definitions, found: list[_Found]) -> tuple[DeadValue, ...]:
    """The values in the order in which one statement reads others in their place; () where these
    are several statements, or the values are read elsewhere."""
    statements = {id(scene.slicer.statement(v.read)) for v, _ in found}
    distinct = len({v.name for v, _ in found}) == len(found) and len(statements) == 1
    if not distinct or all(made.is_read(v.name) for v, _ in found):
        return ()
    values = [v for v, _ in found]
    return tuple(sorted(values, key=lambda v: (v.read.node.lineno, v.read.node.col_offset)))


def _beside(
    made: _Definitions,
    derived: list[_Definition],
    reads: dict[ast.Name, _Definition | None],
) -> Iterator[_Found]:
    """For each value read, the one value of its form that was computed of it and of the input."""
    origins = {d: made.origins(d) for d in derived}
    read_at: dict[_Origin, list[ast.Name]] = {}
    for node, own in reads.items():
        read_at.setdefault((node.id, own), []).append(node)
    for (name, own), where in read_at.items():
        beside = [d for d in derived if (name, own) in origins[d] and made.alike(d.name, name)]
        where = (
            where
            if len(where) == 1 or not beside
            else [*filter(made.is_handed_on, where[:_MOST_READS])]
        )
        read = {n.id for d in beside for n in d.reads}
        last = [d for d in beside if d.name not in read]
        if len(last) == 1 and len(where) == 1:
            value = DeadValue(last[0].name, name, made.spot(last[0].value), made.spot(where[0]))
            yield value, own


def _nearest(made: _Definitions, found: Iterable[_Found]) -> Iterator[_Found]:
    """Without the values that another one of them was computed of on the way to the same name."""
    listed = list(found)
    for value, own in listed:
        others = (o for v, o in listed if v.name == value.name and o is not own and o is not None)
        if not any((value.original, own) in made.origins(o) for o in others):
            yield value, own


class _Definitions:
    """The statements of one function, or of the cells up to one, that give names their values."""

    def __init__(self, scene: Scene, scope: Scope) -> None:
        self._scene, self._scope = scene, scope
        sources = [scope.source]
        if isinstance(scope.body, ast.Module) and scope.source in scene.index.runs:
            runs = scene.index.runs
            sources = list(runs[: runs.index(scope.source) + 1])
        self._at: dict[ast.AST, int] = {}
        self._sources = sources
        self._found: list[_Definition] = []
        self._of_name: dict[str, list[_Definition]] = {}
        self._read: set[str] = set()
        for source in sources:
            body = scope.body if source is scope.source else source.tree
            for statement in islice(statements_of(body), _MOST):
                self._add(source, statement)
            inner = (n for n in ast.walk(body) if n is not body and isinstance(n, FUNCTIONS))
            self._read |= {n.id for f in inner for n in _values_read(f)}

    def _add(self, source: Source, statement: ast.stmt) -> None:
        at = len(self._at)
        self._at[statement] = at
        for target, value in _given(statement):
            if (name := key_of(target)) is not None:
                reads = tuple(_values_read(value))
                self._found.append(_Definition(at, source, name, value, reads))
                self._of_name.setdefault(name, []).append(self._found[-1])
        for node in ast.iter_child_nodes(statement):
            if not isinstance(node, (ast.stmt, ast.ExceptHandler)):
                self._read |= {n.id for n in _values_read(node)}

    def is_read(self, name: str) -> bool:
        """Whether more than the form of a value is read anywhere."""
        return name in self._read

    def derived_from(self, key: str) -> list[_Definition]:
        """What was computed of the values of the name that the input has."""
        found: list[_Definition] = []
        names = {key}
        for d in self._found:
            if any(n.id in names for n in d.reads):
                found.append(d)
                names.add(d.name)
            elif d.name != key:
                names.discard(d.name)
        return [d for d in found if d.name != key]

    def behind(self, root: ast.AST) -> dict[ast.Name, _Definition | None]:
        """The names read on the way to a result, each with what had given it its value."""
        found: dict[ast.Name, _Definition | None] = {}
        statement = self._scene.slicer.index(self._scope.source).statement(root)
        pending = [(n, self._at.get(statement, 0)) for n in _values_read(root)] if statement else []
        while pending:
            name, at = pending.pop()
            if name in found:
                continue
            made = found[name] = self._before(name.id, at)
            pending += [] if made is None else [(n, made.at) for n in made.reads]
        return found

    def _before(self, name: str, at: int) -> _Definition | None:
        return next((d for d in reversed(self._of_name.get(name, ())) if d.at < at), None)

    def origins(self, made: _Definition) -> set[_Origin]:
        """What a value was computed of, directly or over others."""
        pending, found = [made], set[_Origin]()
        while pending and len(found) < _MOST:
            d = pending.pop(0)
            for n in d.reads:
                origin = n.id, self._before(n.id, d.at)
                if origin not in found:
                    found.add(origin)
                    pending += [] if origin[1] is None else [origin[1]]
        return found

    def alike(self, one: str, other: str) -> bool:
        """Whether both names stand for tensors of one shape and type."""
        values = [self._scope.values.get(name) for name in (one, other)]
        tensors = [v for v in values if is_a(v, torch.Tensor)]
        if len(tensors) < 2:
            return False
        first, second = tensors
        return first.shape == second.shape and first.dtype == second.dtype

    def is_handed_on(self, name: ast.Name) -> bool:
        """Whether it is given to a function or module that is not torch's own: `net(x)`."""
        source = self._source_of(name)
        call = self._scene.slicer.index(source).parents.get(name)
        if not isinstance(call, ast.Call) or name not in call.args:
            return False
        return self._scene.index.package(source, call) != "torch"

    def spot(self, node: ast.expr) -> ExprAt:
        source = self._source_of(node)
        if source is self._scope.source:
            return ExprAt(self._scope, node)
        return self._scene.slicer.at(source, node)

    def _source_of(self, node: ast.AST) -> Source:
        for source in self._sources:
            if self._scene.slicer.index(source).statement(node) in self._at:
                return source
        return self._scope.source


def _given(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target with its value: of `a, b = f(x), y` two, of `a, b = pair` both with `pair`."""
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign)) and statement.value is not None:
        yield statement.target, statement.value
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        for target in ast.walk(statement.target):
            if isinstance(target, ast.Name):
                yield target, statement.iter
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        for item in statement.items:
            if item.optional_vars is not None:
                yield item.optional_vars, item.context_expr
    for target in statement.targets if isinstance(statement, ast.Assign) else ():
        yield from _paired(target, statement.value)  # type: ignore[attr-defined]


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
        return
    several = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
    values: Iterable[ast.expr] = (
        value.elts if several else [value] * len(target.elts)  # type: ignore[attr-defined]
    )
    for one, part in zip(target.elts, values, strict=True):
        yield from _paired(one, part)


def _values_read(node: ast.AST) -> Iterator[ast.Name]:
    """The names whose values an expression reads, and not their form alone."""
    if is_about_shape(node):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _values_read(child)
