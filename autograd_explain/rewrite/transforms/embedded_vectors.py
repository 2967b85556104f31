"""The gradient of what an embedding layer looked up, where one was asked for of the ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import used_names
from ..analysis.inplace_writes import words
from ..engine.cst_tools import (
    called_name,
    called_on,
    dotted,
    keyword,
    pairs,
    positional,
    targets,
    walk,
)
from ..engine.draft import Draft
from ..engine.tree import Statement, statement_at
from .casts import without_flag

if TYPE_CHECKING:
    from ...inspect.facts.embedded_ids import EmbeddedIds

_VECTORS = "embeds"
_LEAF = "detach().requires_grad_()"


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
    tree, statement = statement_at(program, None if ids is None else ids.call)
    call = None if ids is None else tree.call(ids.call)
    if ids is None or statement is None or call is None:
        return None
    result = next((dotted(target) for target, value in pairs(statement) if value is call), None)
    vectors = _VECTORS if ids.layer else result
    if not vectors or (ids.layer and used_names(tree.module) & words(f"{_VECTORS} handle")):
        return None
    kept = f"{vectors}.retain_grad()\n" if ids.trained and flag is not None else ""
    end = "" if ids.trained else f".{_LEAF}"
    made = f"{vectors} = {ids.layer}({ids.name}){end}\n{kept}" if ids.layer else ""
    draft = Draft(tree)
    if flag is None:
        draft.before(statement, made)
    else:
        _flag_replaced(draft, tree.statement(flag), made)
    if ids.layer:
        _handed_in(draft, statement, ids.layer)
    elif ids.trained:
        draft.after(statement, kept)
    else:
        draft.behind(call, _LEAF)
    _read_instead(draft, tree.around(statement, cst.FunctionDef) or tree.module, ids.name, vectors)
    return draft.edits()


def _flag_replaced(draft: Draft, own: Statement | None, made: str) -> None:
    """What asks for the gradient gives way to what makes the vectors."""
    call = own.value if isinstance(own, cst.Assign) else None
    sets = any((dotted(target) or "").endswith(".requires_grad") for target in targets(own))
    if sets or called_on(own, "requires_grad_"):
        draft.instead(own, made)
    else:
        plain = without_flag(call) if isinstance(call, cst.Call) else None
        draft.replace(call, None if plain is call else plain).after(own, made)


def _handed_in(draft: Draft, statement: Statement, layer: str) -> None:
    hook = f"lambda module, args, output: {_VECTORS}"
    registered = f"handle = {layer}.register_forward_hook({hook})"
    simple = statement if isinstance(statement, (cst.Assign, cst.Expr)) else None
    draft.before(simple, registered).after(simple, "handle.remove()")


def _read_instead(draft: Draft, scope: cst.CSTNode, name: str, vectors: str) -> None:
    """The gradient is read of the vectors."""
    for node in walk(scope):
        read: list[cst.CSTNode] = []
        if isinstance(node, cst.Attribute) and node.attr.value == "grad":
            read = [node.value]
        elif isinstance(node, cst.Call) and called_name(node) == "grad":
            inputs = keyword(node, "inputs")
            read = [n for a in (*positional(node)[1:2], inputs) if a for n in walk(a.value)]
        for inner in read:
            if isinstance(inner, cst.Name) and inner.value == name:
                draft.replace(inner, cst.Name(vectors))
