"""A gradient of its own for what writes it: a new tensor, or a copy made first."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import What
from autograd_explain.program import own_nodes
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.analysis.inplace_writes import InplaceCall, inplace_calls
from autograd_explain.rewrite.engine.cst_tools import make
from autograd_explain.rewrite.engine.draft import Draft, only
from autograd_explain.rewrite.engine.tree import Statement, Tree, opening, statements_in

from .diagnose import Details


def _new_tensor(site: Site[Details]) -> Edits | None:
    """`lambda g: g.mul_(2)` -> `lambda g: g.mul(2)`; so where a function returns the write."""
    tree = site.tree
    return only(
        Draft(tree).replace(call.node, call.value)
        for _, call in _writes(site, tree)
        if isinstance(tree.parents[call.node], (cst.Lambda, cst.Return))
    )


def _writes(site: Site[Details], tree: Tree) -> Iterator[tuple[Statement, InplaceCall]]:
    """The calls that write the gradient under the name that it came in by."""
    handed = site.details.handed
    if handed is not None and handed.alias is None:
        for statement in tree.candidates(site.place):
            for call in inplace_calls(tree, statement):
                if tree.code(call.target) == handed.incoming and not call.hidden:
                    yield statement, call


def _copied_first(site: Site[Details]) -> Edits | None:
    """`g = g.clone()` as the first statement, and `return g` as the last where nothing is; or
    `own = g` -> `own = g.clone()`."""
    handed = site.details.handed
    if handed is None or isinstance(handed.function, ast.Lambda):
        return None
    node, name = handed.alias or handed.function, handed.incoming
    spot = site.at(handed.source.place(node.lineno, None, node))
    if handed.alias is not None:
        return spot.called("clone")
    if not isinstance(spot.own, cst.FunctionDef):
        return None
    draft = Draft(spot.tree).before(opening(spot.own.body), [make(f"{name} = {name}.clone()")])
    if not _returns(handed.function):
        draft.after(statements_in(spot.own.body)[-1], [make(f"return {name}")])
    return draft.edits()


def _only_read(site: Site[Details]) -> Edits | None:
    """`share = g.abs_().sum()` -> `share = g.abs().sum()` in a function that returns nothing: it
    computes something of the gradient, and does not mean to change it."""
    handed, tree = site.details.handed, site.tree
    if handed is None or isinstance(handed.function, ast.Lambda) or _returns(handed.function):
        return None
    return only(
        Draft(tree).replace(call.node, call.value)
        for statement, call in _writes(site, tree)
        if getattr(statement, "value", None) is not call.node
    )


def _returns(function: ast.FunctionDef) -> bool:
    """Whether a function gives anything back."""
    found = (n for n in own_nodes(function) if isinstance(n, ast.Return))
    return any(n.value is not None for n in found)


propose: Propose[Details] = by_table(
    Fix("only_read", _only_read, changes=True),
    Fix("new_tensor", _new_tensor),
    Fix("copied_first", lambda s: None if _only_read(s) else _copied_first(s)),
    at=What.CHANGED,
)
