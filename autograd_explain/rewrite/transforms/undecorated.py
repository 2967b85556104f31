"""A call of what a library's decorator wraps, in place of the decorated function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Protocol

from ...model import Edits, Place
from ...program import Program
from .uncut import Patch, apply_all, code_of, node_at


class WrappedCall(Protocol):
    """A call of what a decorator runs without recording: of an object, which runs its `method`
    (`forward` of a module), of a method (""), or of a plain function (`alone`).  Behind `levels`
    decorators it records."""

    @property
    def place(self) -> Place: ...
    @property
    def method(self) -> str: ...
    @property
    def alone(self) -> bool: ...
    @property
    def levels(self) -> int: ...


def wrapped_instead(program: Program, calls: Sequence[WrappedCall]) -> Edits | None:
    """`model.encode(x)` -> `model.encode.__wrapped__(model, x)`, at every call of the kind."""
    return apply_all(_what_is_wrapped(program, call) for call in calls)


def _what_is_wrapped(program: Program, call: WrappedCall) -> list[Patch]:
    node, source = node_at(program, call.place), program.source_at(call.place)
    if not isinstance(node, ast.Call) or source is None or call.place.span is None:
        return []
    owner: ast.expr | None = node.func if call.method else getattr(node.func, "value", None)
    owner = None if call.alone else owner
    if owner is None and not call.alone:
        return []
    given = [*(() if owner is None else (owner,)), *node.args, *node.keywords]
    inner = ", ".join(code_of(program, call.place, g) for g in given)
    method = f".{call.method}" * bool(call.method) + ".__wrapped__" * call.levels
    behind = call.place.span.since(source.span(node.func))
    return [Patch(source, behind, f"{method}({inner})")]
