"""A place of the program, and the edits that most rewrites are made of."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeAlias, TypeVar

import libcst as cst

from ...model import Edits, Finding, Place
from ...program import Program, Source
from ..engine.cst_tools import filled, keyword, without
from ..engine.draft import Draft
from ..engine.edits import Step, each
from ..engine.imports import Imports, imports_at
from ..engine.tree import Statement, Tree, tree_at
from .uncut import Patch, apply_all, apply_patches, called, code_of, keyword_added, replacement

D = TypeVar("D")
_Given: TypeAlias = Mapping[str, str | Place | None]


@dataclass(frozen=True)
class Spot:
    """What may be done at a place: None where that is not known, or holds nothing of the kind.

    What is done to an expression is done to all those `beside` it, too.  Code is given as a
    template: `{x}` is the text of the expression at the place, `{name}` the same where that can be
    read and written again, `{owner}` what stands before its last dot; of a call `{owner}` is that
    of what is called, `{function}` what is called and `{arguments}` the rest, in brackets.
    `{torch}` and `{torch.nn.Parameter}` are what the program calls these; other parts are given, as
    text or as the place where the text stands.  Where a part is missing, nothing is done.
    """

    program: Program
    place: Place | None
    beside: tuple[Place | None, ...] = field(default=(), kw_only=True)

    def at(self, *places: Place | None) -> Spot:
        """Other places of the program."""
        return Spot(self.program, next(iter(places), None), beside=places[1:])

    def of(self, node: ast.expr | ast.stmt) -> Spot:
        """The place of a node of the same source."""
        source = self.source
        return self.at(None if source is None else source.place(node.lineno, None, node))

    def argument(self, name: str, position: int | None = None) -> Spot:
        """What the call is given by a name, or at a position."""
        call = self.call
        given = [k.value for k in call.keywords if k.arg == name] if call is not None else []
        if call is not None and position is not None:
            given += call.args[position : position + 1]
        return self.of(given[0]) if given else self.at(None)

    # -- what is there -----------------------------------------------------------------------

    @property
    def source(self) -> Source | None:
        return self.program.source_at(self.place)

    @property
    def statement(self) -> ast.stmt | None:
        return self.program.statement_at(self.place)

    @property
    def imports(self) -> Imports:
        return imports_at(self.program, self.place)

    @cached_property
    def tree(self) -> Tree:
        return tree_at(self.program, self.place)

    @cached_property
    def own(self) -> Statement | None:
        """The statement at the place, as the tree has it."""
        return self.tree.statement(self.place)

    @cached_property
    def node(self) -> ast.expr | None:
        """The expression at the place."""
        return self.program.expression_at(self.place)

    @property
    def call(self) -> ast.Call | None:
        """The same where it is a call."""
        node = self.node
        return node if isinstance(node, ast.Call) else None

    @property
    def around(self) -> Sequence[ast.AST]:
        """What the expression stands in, innermost first."""
        source, node = self.source, self.node
        return () if source is None or node is None else tuple(source.around(node))

    @property
    def outer(self) -> ast.AST | None:
        """The innermost of these."""
        return next(iter(self.around), None)

    def code(self, node: ast.AST) -> str:
        """The text of a node of the same source."""
        return code_of(self.program, self.place, node)

    # -- expressions -------------------------------------------------------------------------

    def replaced(self, template: str, **parts: str | Place | None) -> Edits | None:
        """Another expression for the one at the place."""
        return self._each_spot(lambda spot: spot.with_code(template, **parts))

    def with_code(self, template: str, **parts: str | Place | None) -> list[Patch]:
        """The same as patches."""
        code = self._filled(template, parts)
        return replacement(self.program, self.place, code) if code else []

    def called(self, method: str) -> Edits | None:
        """`x` -> `x.mean()`, `a + b` -> `(a + b).mean()`; `method` is written without brackets."""
        places = (self.place, *self.beside)
        return apply_patches(patch for p in places for patch in called(self.program, p, method))

    def given(self, name: str, template: str) -> Edits | None:
        """`f(x)` -> `f(x, name=value)`, also for another value."""
        return self._each_spot(lambda spot: spot.with_argument(name, template))

    def with_argument(self, name: str, template: str) -> list[Patch]:
        """The same as patches."""
        code = self._filled(template, {})
        return keyword_added(self.program, self.place, name, code) if code else []

    def without(self, name: str) -> Edits | None:
        """`f(x, name=value)` -> `f(x)`"""
        call = self.tree.call(self.place)
        given = None if call is None else keyword(call, name)
        plain = without(call, given) if call is not None and given is not None else None
        return Draft(self.tree).replace(call, plain).edits()

    def renamed(self, old: str, new: str) -> Edits | None:
        """`f(old=value)` -> `f(new=value)`"""
        call = self.tree.call(self.place)
        given = None if call is None else keyword(call, old)
        return Draft(self.tree).replace(given and given.keyword, cst.Name(new)).edits()

    def left_out(self, instead: str) -> Edits | None:
        """What a call does not done: `instead` in its place, or no statement where that would only
        name a value or give it its own name."""
        statement, code = self.statement, self._filled(instead, {})
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        alone = isinstance(statement, ast.Expr) or [ast.unparse(t) for t in targets] == [code]
        whole = getattr(statement, "value", None) is self.node
        return self.removed() if alone and whole else self.replaced(instead)

    # -- statements --------------------------------------------------------------------------

    def before(self, template: str, **parts: str | Place | None) -> Edits | None:
        """Statements before the one at the place."""
        return Draft(self.tree).before(self.own, self._filled(template, parts)).edits()

    def behind(self, template: str, **parts: str | Place | None) -> Edits | None:
        """Statements behind it."""
        return Draft(self.tree).after(self.own, self._filled(template, parts)).edits()

    def instead(self, template: str, **parts: str | Place | None) -> Edits | None:
        """Statements in its place."""
        new = self._filled(template, parts)
        return Draft(self.tree).instead(self.own, new).edits() if new else None

    def removed(self) -> Edits | None:
        """The statement taken out."""
        return Draft(self.tree).remove(self.own).edits()

    def each(self, step: Step) -> Edits | None:
        """A transformer at each of the places, one on top of the other."""
        known = [place for place in (self.place, *self.beside) if place is not None]
        return each(self.program, ((step, place) for place in known))

    # ----------------------------------------------------------------------------------------

    def _each_spot(self, how: Callable[[Spot], list[Patch]]) -> Edits | None:
        return apply_all(how(self.at(place)) for place in (self.place, *self.beside))

    def _filled(self, template: str, given: _Given) -> str:
        known = self._parts
        for name in re.findall(r"{(torch[\w.]*)}", template):
            known[name] = self.imports.local(name) or ""
        for name, part in given.items():
            known[name] = part if isinstance(part, str) else self.at(part)._parts["x"]
        used = {name: code for name, code in known.items() if f"{{{name}}}" in template}
        # Line by line: `f(x)` and on the next line `(y).g()` would be one expression in brackets.
        lines = (filled(line, **used) for line in template.split("\n"))
        return "\n".join(lines) if all(used.values()) else ""

    @property
    def _parts(self) -> dict[str, str]:
        node, call = self.node, self.call
        parts = dict.fromkeys(("x", "name", "owner", "function", "arguments"), "")
        if node is not None:
            parts["x"] = self.code(node)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            parts["name"] = parts["x"]
        if call is not None:
            parts["function"] = self.code(call.func)
            parts["arguments"] = parts["x"].partition(parts["function"])[2]
        named = node if call is None else call.func
        if isinstance(named, ast.Attribute):
            parts["owner"] = self.code(named.value)
        return parts


@dataclass(frozen=True)
class Site(Spot, Generic[D]):
    """Where a cause makes a rewrite, and what its diagnosis knows that it needs."""

    place: Place
    finding: Finding[D]

    @property
    def details(self) -> D:
        return self.finding.details
