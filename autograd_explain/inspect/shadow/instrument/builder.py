"""What every part of a twin is built with: sites, calls of hooks, the shape of a target."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeVar

from ....program import Source
from ..site import Site, Sites


class Parts(ast.NodeTransformer):
    """The source being turned, and where in it the transformer stands."""

    def __init__(self, source: Source, sites: Sites) -> None:
        self.source = source
        self.sites = sites
        self.functions: list[str] = []
        self.classes: list[str] = []
        self.bound: dict[int, ast.AST] = {}
        #: expressions that are statements: nobody reads what they give
        self.unused: set[int] = set()

    def site(
        self,
        node: ast.AST,
        *operands: ast.AST,
        shown: ast.AST | None = None,
        target: ast.AST | None = None,
        prefer: bool = True,
    ) -> ast.Constant:
        """Registers a site and gives its index as the hook's first argument."""
        function = self.functions[-1] if self.functions else None
        target = target or self.bound.get(id(node))
        index = self.sites.free
        self.sites[index] = Site(
            index,
            self.source,
            function,
            node,
            shown or node,
            operands,
            target,
            prefer,
            id(node) not in self.unused,
        )
        return ast.Constant(index)

    def hook(
        self, name: str, *args: ast.expr, at: ast.AST, keywords: Sequence[ast.keyword] = ()
    ) -> ast.Call:
        func = ast.Name(f"_ag_{name}", ast.Load())
        return located(ast.Call(func, list(args), list(keywords)), at)

    def expr(self, node: ast.expr) -> ast.expr:
        found = self.visit(node)
        assert isinstance(found, ast.expr)
        return found

    def body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            result = self.visit(statement)
            found.extend(result if isinstance(result, list) else [result])
        return found or [ast.Pass()]

    def mangled(self, name: str) -> str:
        """Python mangles `self.__x` in a class body; a name handed over as text must be."""
        if self.classes and name.startswith("__") and not name.endswith("__"):
            return f"_{self.classes[-1].lstrip('_')}{name}"
        return name


_Node = TypeVar("_Node", bound=ast.AST)


def located(node: _Node, at: ast.AST) -> _Node:
    return ast.copy_location(node, at)


def shape(target: ast.expr) -> ast.Constant:
    """The names a target binds: "x", or nested tuples of names; "*" for a starred part."""
    names: Any = _names(target)
    return ast.Constant(names)


def _names(target: ast.expr) -> object:
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, (ast.Tuple, ast.List)):
        return tuple(_names(e) for e in target.elts)
    return "*" if isinstance(target, ast.Starred) else ""
