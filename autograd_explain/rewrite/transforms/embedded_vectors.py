"""The gradient of what an embedding layer looked up, where one was asked for of the ids."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...model import Edits, Place
from ...program import Located, Program, Source, called_name
from ..analysis.inplace_writes import words
from .uncut import Patch, apply_patches, lines_before, lines_behind, node_at

if TYPE_CHECKING:
    from ...inspect.facts.embedded_ids import EmbeddedIds

_VECTORS = "embeds"
_LEAF = ".detach().requires_grad_()"


def gradient_of_vectors(
    program: Program, ids: EmbeddedIds | None, flag: Place | None = None
) -> Edits | None:
    """`ids.requires_grad_()`, `score = model(ids)`, `ids.grad` ->
    `embeds = model.emb(ids)`, `embeds.retain_grad()`, the same call with them, `embeds.grad`; of a
    layer that is not trained they are a leaf of their own.

    They go in through a hook of the layer; of a call of the layer itself its result is meant.
    `flag` is the place of what asked for the gradient, if that was no call of
    `torch.autograd.grad`.
    """
    if ids is None:
        return None
    name, call, layer = ids.name, ids.call, ids.layer
    source, node = program.source_at(call), node_at(program, call)
    statement = None if source is None else source.statement_at(call.line - source.offset)
    if source is None or not isinstance(node, ast.Call) or statement is None:
        return None
    used = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
    vectors = _result(statement, node) if not layer else _VECTORS
    if not vectors or (layer and used & words(f"{_VECTORS} handle")):
        return None
    kept = [f"{vectors}.retain_grad()"] if ids.trained and flag is not None else []
    made = [f"{vectors} = {layer}({name}){'' if ids.trained else _LEAF}", *kept] if layer else []
    try:
        patches = [
            *_without_flag(source, source.statement_at(_line(source, flag)), made),
            *_handed_in(source, statement, node, ids, kept if not layer else []),
            # Of two at one place the later one goes first.
            *([] if flag is not None or not made else [lines_before(source, statement, *made)]),
            *_read(source, source.function_at(call) or source.tree, name, vectors),
        ]
    except _CannotBe:
        return None
    return apply_patches(patches)


class _CannotBe(Exception):
    """The statement is spelled in a way that is not known."""


def _line(source: Source, place: Place | None) -> int:
    return 0 if place is None else place.line - source.offset


def _result(statement: ast.stmt, call: ast.Call) -> str:
    """`e` of `e = emb(ids)`."""
    whole = isinstance(statement, ast.Assign) and statement.value is call
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return target.id if whole and isinstance(target, ast.Name) else ""


def _without_flag(source: Source, statement: ast.stmt | None, made: list[str]) -> Iterator[Patch]:
    """What asks for the gradient gives way to what makes the vectors."""
    if statement is None:
        return
    value = getattr(statement, "value", None)
    call = value if isinstance(value, ast.Call) else None
    method = call.func if call is not None and isinstance(call.func, ast.Attribute) else None
    flagged = method is not None and method.attr == "requires_grad_"
    by_name = [k for k in call.keywords if k.arg == "requires_grad"] if call is not None else []
    if (isinstance(statement, ast.Expr) and flagged) or _sets_flag(statement):
        lines = f"\n{' ' * statement.col_offset}".join(made)
        yield Patch(source, source.span(statement), lines or "pass")
    elif isinstance(statement, ast.Assign) and call is not None and method is not None and flagged:
        yield Patch(source, source.span(call), source.segment(method.value))
        yield from [lines_behind(source, statement, *made)] if made else ()
    elif isinstance(statement, ast.Assign) and call is not None and by_name:
        given: list[Located] = [*call.args, *(k for k in call.keywords if k is not by_name[0])]
        arguments = ", ".join(map(source.segment, given))
        yield Patch(source, source.span(call), f"{source.segment(call.func)}({arguments})")
        yield from [lines_behind(source, statement, *made)] if made else ()
    else:
        raise _CannotBe


def _sets_flag(statement: ast.stmt) -> bool:
    """`ids.requires_grad = True`"""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return isinstance(target, ast.Attribute) and target.attr == "requires_grad"


def _handed_in(
    source: Source, statement: ast.stmt, call: ast.Call, ids: EmbeddedIds, kept: list[str]
) -> Iterator[Patch]:
    if not ids.layer:
        yield from [] if ids.trained else [Patch(source, source.span(call).end, _LEAF)]
        yield from [lines_behind(source, statement, *kept)] if kept else []
    elif not isinstance(statement, (ast.Assign, ast.Expr)):
        raise _CannotBe
    else:
        hook = f"lambda module, args, output: {_VECTORS}"
        registered = f"handle = {ids.layer}.register_forward_hook({hook})"
        yield lines_before(source, statement, registered)
        yield lines_behind(source, statement, "handle.remove()")


def _read(source: Source, scope: ast.AST, name: str, vectors: str) -> Iterator[Patch]:
    """The gradient is read of the vectors."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            if isinstance(node.value, ast.Name) and node.value.id == name:
                yield Patch(source, source.span(node.value), vectors)
        if isinstance(node, ast.Call) and called_name(node) == "grad":
            inputs = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "inputs")]
            for inner in (n for given in inputs for n in ast.walk(given)):
                if isinstance(inner, ast.Name) and inner.id == name:
                    yield Patch(source, source.span(inner), vectors)
