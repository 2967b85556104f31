"""Masks of a softmax that leave a number where nothing is left."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..engine.cst_tools import is_number, targets
from ..engine.draft import Drafts
from ..engine.tree import Tree, statement_at


def finite_fill(program: Program, place: Place) -> Edits | None:
    """`s.masked_fill(m, float("-inf"))` -> `s.masked_fill(m, -1e9)`, wherever the function around
    a place masks so, else wherever the program does: a row without anything left is 0 / 0 to a
    softmax."""
    (tree, own), drafts = statement_at(program, place), Drafts()
    if own is None:
        return None
    here = [node for node in _infinities(tree) if tree.scope_of(node) is tree.scope_of(own)]
    for other in [tree] if here else tree.namespace:
        for node in here or _infinities(other):
            drafts[other].replace(node, cst.parse_expression("-1e9"))
    return drafts.edits()


def _infinities(tree: Tree) -> Iterator[cst.BaseExpression]:
    """The expressions for minus infinity with which something is filled."""
    for node, parent in tree.parents.items():
        if not isinstance(node, cst.BaseExpression) or not is_number(node):
            continue
        text = tree.code(node).lower()
        item = isinstance(parent, cst.Assign) and isinstance(targets(parent)[0], cst.Subscript)
        if "inf" in text and "-" in text and (item or isinstance(parent, cst.Arg)):
            yield node
