"""Expressions where they stand."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...program import Source, called_name
from . import safe_lookup
from .reaching_definitions import Body, Part, key_of


@dataclass(frozen=True, eq=False)
class Scope:
    """A run of a function, or the top level of a cell or file.

    `values` are live names (a frame's locals, the user's namespace), `given` what the parameters
    were when it began, where that alone is known.  `call` is the expression that called the
    function, where known; `receiver` the live `self`, or its class; `outer` the run of the function
    around it, where known.
    """

    source: Source
    body: Body
    values: Mapping[str, Any] = field(default_factory=dict)
    call: ExprAt | None = None
    receiver: Any = safe_lookup.MISSING
    current: ast.AST | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    outer: Scope | None = None

    @property
    def function(self) -> str | None:
        return getattr(self.body, "name", None)


@dataclass(frozen=True, eq=False)
class ExprAt:
    """An expression (or an augmented assignment) where it stands.

    `path` leads from its value to the part meant: `torch.split(x, 2)` with path (1,) is the
    second piece.  `via` are the names through which a walk came here, the user's last line first.
    `spelled` is the text of an expression that does not stand in the source.
    """

    scope: Scope
    node: ast.expr | ast.AugAssign
    path: tuple[Part, ...] = ()
    via: tuple[ExprAt, ...] = ()
    spelled: str = ""

    @property
    def text(self) -> str:
        """The expression as the user wrote it, on one line."""
        if self.spelled:
            return self.spelled
        segment = self.scope.source.segment(self.node)
        return " ".join((segment or ast.unparse(self.node)).split())

    @property
    def function(self) -> str | None:
        return self.scope.function

    def inside(self, node: ast.expr) -> ExprAt:
        """Another expression of the same scope."""
        return ExprAt(self.scope, node)

    @property
    def called(self) -> str:
        """The last name of what a call calls; "" for anything else."""
        return called_name(self.node)

    @property
    def key(self) -> str | None:
        """The path that it is (`self.net[0]`), None where it is none."""
        return key_of(self.node)

    @property
    def callable(self) -> ExprAt | None:
        """What a call calls: `x.f` of `x.f(…)`."""
        return self.inside(self.node.func) if isinstance(self.node, ast.Call) else None

    @property
    def receiver(self) -> ExprAt | None:
        """`x` of the call `x.f(…)`."""
        function = self.node.func if isinstance(self.node, ast.Call) else None
        return self.inside(function.value) if isinstance(function, ast.Attribute) else None

    def argument(self, position: int, *names: str) -> ExprAt | None:
        """What a call is given by position or by one of these names."""
        if not isinstance(self.node, ast.Call):
            return None
        named = next((k.value for k in self.node.keywords if k.arg in names), None)
        if named is not None:
            return self.inside(named)
        given = self.node.args[: position + 1]
        if len(given) <= position or any(isinstance(a, ast.Starred) for a in given):
            return None
        return self.inside(given[position])
