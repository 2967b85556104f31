"""`h.retain_grad()`, `requires_grad_()`: asking for a gradient where a tensor is made."""

from __future__ import annotations

import libcst as cst

from ..model import Edit, Place
from ..program import Program
from .code import repeatable, same, targets, unpacked
from .code import statement as make
from .draft import Draft
from .locate import Statement, Tree, tree_at


def retain_grad_after(
    program: Program, place: Place, expr: str | None = None
) -> tuple[Edit, ...] | None:
    """Insert `h.retain_grad()` after the statement that assigns h.

    `expr` chooses among several assigned names.
    """
    return _call_after(program, place, expr, "retain_grad()")


def requires_grad_after(
    program: Program, place: Place, expr: str | None = None
) -> tuple[Edit, ...] | None:
    """Insert `x.requires_grad_()` after the statement that assigns x."""
    return _call_after(program, place, expr, "requires_grad_()")


def _call_after(
    program: Program, place: Place, expr: str | None, call: str
) -> tuple[Edit, ...] | None:
    tree = tree_at(program, place)
    if tree is None:
        return None
    drafts = []
    for statement in tree.candidates(place):
        target = _assigned(tree, statement, expr)
        if target is not None:
            draft = Draft(tree)
            draft.after(statement, [make("{x}." + call, x=target)])
            drafts.append(draft)
    return drafts[0].edits() if len(drafts) == 1 else None


def _assigned(tree: Tree, statement: Statement, expr: str | None) -> cst.BaseExpression | None:
    """The one target meant; of `self.a = h = …` any will do."""
    if not isinstance(statement, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
        return None
    leaves = [leaf for t in targets(statement) for leaf in unpacked(t)]
    whole = not any(isinstance(t, (cst.Tuple, cst.List)) for t in targets(statement))
    if expr is None:
        chosen = leaves[-1:] if whole else []
    else:
        chosen = [leaf for leaf in leaves if same(tree, leaf, expr)]
    return chosen[0] if len(chosen) == 1 and repeatable(chosen[0]) else None
