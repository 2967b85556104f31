"""Where an operator may be applied, and what it would change there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..engine.blocks import BlockItem
from ..engine.cst_tools import (
    called_name,
    calls_in,
    dotted,
    head,
    is_label,
    is_starred,
    make,
    stores,
    whole_value,
)
from ..engine.draft import Draft
from ..engine.imports import Imports
from ..engine.tree import Statement, Tree, opening

Make: TypeAlias = Callable[[], Edits | None]
Put: TypeAlias = Callable[[Draft, Statement, list[Statement | BlockItem]], Draft]


@dataclass(frozen=True, eq=False)
class Site:
    """A statement of a cell or of a file of the user's."""

    program: Program
    tree: Tree
    statement: Statement

    @cached_property
    def place(self) -> Place:
        return self.tree.place(self.statement)

    @property
    def imports(self) -> Imports:
        return self.tree.imports

    @cached_property
    def value(self) -> cst.BaseExpression | None:
        """The one value that the statement assigns or returns."""
        return whole_value(self.statement)

    @cached_property
    def calls(self) -> tuple[cst.Call, ...]:
        """The calls in the statement, the outermost first."""
        return tuple(calls_in(self.statement))

    @property
    def above(self) -> Iterator[Statement]:
        """The statements of the same scope that stand before it, the nearest first."""
        scope, start = self.tree.scope_of(self.statement), self.tree.start(self.statement)
        for other in reversed(self.tree.statements):
            if self.tree.start(other) < start and self.tree.scope_of(other) is scope:
                yield other

    @cached_property
    def operands(self) -> dict[str, list[cst.BaseExpression]]:
        """What the statement reads and a tensor may be, by its text: names, attributes, parts and
        what calls give."""
        found: dict[str, list[cst.BaseExpression]] = {}
        if isinstance(self.statement, _DECLARES):
            return found
        stored = set(map(id, stores(self.statement)))
        for node in head(self.statement):
            if isinstance(node, _VALUES) and id(node) not in stored and self._is_value(node):
                found.setdefault(self.tree.code(node), []).append(node)
        return found

    def _is_value(self, node: cst.Name | cst.Attribute | cst.Subscript | cst.Call) -> bool:
        parent = self.tree.parents[node]
        if is_label(self.tree, node) or is_starred(self.tree, node):
            return False
        if isinstance(parent, (cst.Annotation, cst.NameItem, cst.Param)):
            return False
        function = isinstance(parent, cst.Call) and parent.func is node
        if function or called_name(node) in _GIVE_NO_TENSOR:
            return False
        path = dotted(node)
        return path is None or (path not in _NO_VALUES and not self.imports.full(path))

    def change(
        self,
        operator: str,
        at: cst.CSTNode | str,
        how: Callable[..., Edits | None],
        *args: object,
        group: str = "",
        **nodes: cst.BaseExpression,
    ) -> Change:
        """What an operator would do here: `how(*args, **nodes)`; `at` is what is meant of the
        user's text."""
        code = at if isinstance(at, str) else self.tree.code(at).strip()
        return Change(operator, self, code, partial(how, *args, **nodes), group)

    def made(self, transform: Callable[..., Edits | None], *args: object) -> Make:
        """What a transformer makes of the statement."""
        return partial(transform, self.program, self.place, *args)

    def replaced(self, old: cst.CSTNode, new: cst.CSTNode) -> Edits | None:
        """The edit that puts a node in the place of another."""
        return Draft(self.tree).replace(old, new).edits()

    def line(self, put: Put, code: str, **nodes: cst.BaseExpression) -> Edits | None:
        """The edit that puts a line made from a pattern before, behind or instead of the
        statement: `site.line(Draft.after, "{x}.clear()", x=node)`."""
        return put(Draft(self.tree), self.statement, [make(code, **nodes)]).edits()

    def opening(self, *codes: str) -> Edits | None:
        """The edit that puts lines at the beginning of the block that the statement heads."""
        first = opening(getattr(self.statement, "body", self.statement))
        return Draft(self.tree).before(first, [make(code) for code in codes]).edits()

    def called_on(self, call: str, *nodes: cst.BaseExpression) -> Edits | None:
        """The edit that makes `node.call` of each of the nodes."""
        draft = Draft(self.tree)
        for node in nodes:
            draft.behind(node, call)
        return draft.edits()


_DECLARES = (
    *(cst.Import, cst.ImportFrom, cst.FunctionDef, cst.ClassDef),
    *(cst.Global, cst.Nonlocal, cst.Del),
)
_VALUES = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
_GIVE_NO_TENSOR = frozenset(
    "range zip enumerate len print list dict str isinstance super parameters named_parameters "
    "backward step zero_grad items values keys append".split()
)
_NO_VALUES = frozenset("self cls super True False None range len print".split())


@dataclass(frozen=True, eq=False)
class Change:
    """What an operator would do at a site; `make` gives the edits, or None where it cannot.

    `code` is the part of the user's text that is meant.  Changes of one operator that share a
    `group` are made of equal mistakes: they are also tried together.
    """

    operator: str
    site: Site
    code: str
    make: Make
    group: str = ""


#: A kind of edit, and where it fits: no operator knows what the program did wrong.
Operator = Callable[[Site], Iterator[Change]]
