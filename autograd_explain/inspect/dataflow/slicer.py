"""From an expression back to the expressions that made its value, across functions and cells.

A `ExprAt` is an expression where it stands.  `Slicer.makers` follows everything that hands a value
on unchanged (names, attributes, containers, returns, arguments) and stops at what computes a new
one.  `Slicer.operands` then tells what that computation read.  Live objects decide which function
or module a call means and, where a name still holds it, which value it is; nothing is run.

Each idea of the walk has its module, of functions that take the walker first; the walker's
methods are these functions.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from functools import cached_property

from ...incident import Incident
from ...model import Place
from ...program import Program, Source
from . import attributes, calls, container_writes, live_values, names, operands, scopes
from .attributes import from_attribute
from .calls import from_call
from .containers import from_display, from_subscript, put_in
from .expression import ExprAt, Scope
from .failing_expression import frame_chain, frame_scopes
from .names import from_key
from .reaching_definitions import BindingIndex

_MAX_DEPTH = 40
_MAX_STEPS = 20_000
_MAX_WITHIN = 2


class Slicer:
    """Walks one failure's program; answers are conclusions from the source (inferred)."""

    def __init__(self, program: Program, incident: Incident) -> None:
        self.program = program
        self.incident = incident
        self._indexes: dict[int, BindingIndex] = {}
        self._steps = 0
        self._within: Counter[tuple[object, ...]] = Counter()

    # -- places ------------------------------------------------------------------------------

    def index(self, source: Source) -> BindingIndex:
        found = self._indexes.get(id(source.tree))
        if found is None:
            found = self._indexes[id(source.tree)] = BindingIndex(source.tree)
        return found

    def statement(self, spot: ExprAt) -> ast.stmt | None:
        return self.index(spot.scope.source).statement(spot.node)

    def place(self, spot: ExprAt) -> Place:
        """The place of the statement's line on which the expression begins, its span the
        expression."""
        return spot.scope.source.place(spot.node.lineno, spot.function, spot.node)

    def place_of(self, scope: Scope, node: ast.AST) -> Place:
        return scope.source.place(getattr(node, "lineno", 1), scope.function, node)

    def at(self, source: Source, node: ast.expr) -> ExprAt:
        """An expression that was found in the text of a source."""
        return ExprAt(self.scope_of(source, self.index(source).body_of(node)), node)

    def imagined(self, at: ExprAt, node: ast.expr) -> ExprAt:
        """An expression that the user did not write there, as if it stood at `at`."""
        index = self.index(at.scope.source)
        for parent in ast.walk(node):
            ast.copy_location(parent, at.node)
            for child in ast.iter_child_nodes(parent):
                index.parents[child] = parent
        around = index.parents.get(at.node)
        if around is not None:
            index.parents[node] = around
        return ExprAt(at.scope, node, spelled=ast.unparse(node))

    # -- following a value -------------------------------------------------------------------

    def makers(self, spot: ExprAt) -> list[ExprAt]:
        """The expressions that computed the value of `spot`, nearest first; several where
        branches, loops or list elements leave several."""
        found: list[ExprAt] = []
        mark = (id(spot.node), spot.path)
        # What a step has to know may be asked through the same expression again (`self.x =
        # self.x.sin()`): nothing new would come of it.
        if self._within[mark] < _MAX_WITHIN:
            self._within[mark] += 1
            try:
                self._follow(spot, 0, found, set())
            finally:
                self._within[mark] -= 1
        return found

    def _follow(
        self, spot: ExprAt, depth: int, found: list[ExprAt], seen: set[tuple[object, ...]]
    ) -> None:
        self._steps += 1
        mark = (id(spot.node), id(spot.scope.body), spot.path, id(spot.scope.call))
        if depth > _MAX_DEPTH or self._steps > _MAX_STEPS or mark in seen:
            return
        seen.add(mark)
        onward = self._onward(spot)
        if onward is None:
            found.append(spot)
            return
        via = (*spot.via, spot) if spot.key is not None else spot.via
        for following in onward:
            # What was found inside a container has come through names of its own.
            inner = tuple(s for s in following.via if not s.path)
            self._follow(replace(following, via=(*via, *inner)), depth + 1, found, seen)

    def _onward(self, spot: ExprAt) -> list[ExprAt] | None:
        """Where the same value was before, or None where this expression computed it."""
        node, path = spot.node, spot.path
        if isinstance(node, ast.Name):
            return [*put_in(self, spot), *from_key(self, spot, node.id)] or None
        if isinstance(node, ast.Attribute):
            return [*put_in(self, spot), *from_attribute(self, spot, node)] or None
        if isinstance(node, ast.Subscript):
            return from_subscript(self, spot, node)
        if isinstance(node, ast.IfExp):
            return [ExprAt(spot.scope, n, path) for n in (node.body, node.orelse)]
        if isinstance(node, ast.BoolOp):
            return [ExprAt(spot.scope, n, path) for n in node.values]
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Starred)):
            return [ExprAt(spot.scope, node.value, path)]
        if isinstance(node, ast.Call):
            return from_call(self, spot, node)
        return from_display(spot)

    # -- what the steps of a walk ask ---------------------------------------------------------

    bindings = names.bindings
    stores = attributes.stores
    insertions = container_writes.insertions
    callee = calls.callee
    entry = calls.entry
    argument = calls.argument
    operands = operands.operands
    value = live_values.value
    tensor = live_values.tensor
    sources = scopes.sources
    top = scopes.top
    scope_of = scopes.scope_of

    # -- frames of the failure ---------------------------------------------------------------

    def frame_scope(self, node: ast.AST) -> Scope | None:
        """The live scope of a function definition, or of the function that a call expression
        entered, where the failure passed through it."""
        return self._frame_scopes.get(id(node))

    @cached_property
    def frame_chain(self) -> list[tuple[ExprAt, Scope]]:
        """The user's frames outermost first, each with the expression it stood at."""
        return list(frame_chain(self.program, self.incident))

    @cached_property
    def _frame_scopes(self) -> dict[int, Scope]:
        return dict(frame_scopes(self))
