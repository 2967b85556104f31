"""Changes around a `backward()` call: keep its graph, or end a carried state's graph after it."""

from __future__ import annotations

import libcst as cst

from ..model import Edit, Place
from ..program import Program
from .code import expression, head, keyword, statement, with_keyword
from .draft import Draft
from .locate import tree_at


def keep_graph(program: Program, place: Place) -> tuple[Edit, ...] | None:
    """`loss.backward()` -> `loss.backward(retain_graph=True)`; None where it says so already."""
    tree = tree_at(program, place)
    found = None if tree is None else tree.statement(place)
    if tree is None or found is None:
        return None
    calls = [
        node
        for node in head(found)
        if isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in ("backward", "grad")
    ]
    if len(calls) != 1 or keyword(calls[0], "retain_graph") is not None:
        return None
    draft = Draft(tree)
    draft.replace(calls[0], with_keyword(calls[0], "retain_graph", cst.Name("True")))
    return draft.edits()


def detach_after(
    program: Program, place: Place, expr: str, *, state: bool = False
) -> tuple[Edit, ...] | None:
    """A line `h = h.detach()` after the statement at `place`; `state`: h is a tuple of tensors."""
    tree = tree_at(program, place)
    found = None if tree is None else tree.statement(place)
    if tree is None or found is None:
        return None
    node = expression(expr)
    value = "tuple(s.detach() for s in {x})" if state else "{x}.detach()"
    draft = Draft(tree)
    draft.after(found, [statement("{x} = " + value, x=node)])
    return draft.edits()
