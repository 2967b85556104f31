"""`x.requires_grad_()` behind the statement that makes a tensor."""

from __future__ import annotations

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.engine.cst_tools import (
    make,
    repeatable,
    same,
    single_targets,
    targets,
)
from autograd_explain.rewrite.engine.draft import Draft, only
from autograd_explain.rewrite.engine.tree import Statement, Tree, tree_at


def requires_grad_after(program: Program, place: Place, expr: str | None = None) -> Edits | None:
    """Insert `x.requires_grad_()` after the statement that assigns x."""
    tree = tree_at(program, place)
    return only(
        Draft(tree).after(statement, [make("{x}.requires_grad_()", x=target)])
        for statement in tree.candidates(place)
        if (target := _assigned(tree, statement, expr)) is not None
    )


def _assigned(tree: Tree, statement: Statement, expr: str | None) -> cst.BaseExpression | None:
    """The one target meant; of `self.a = h = …` any will do."""
    if not isinstance(statement, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
        return None
    leaves = single_targets(statement)
    whole = not any(isinstance(t, (cst.Tuple, cst.List)) for t in targets(statement))
    if expr is None:
        chosen = leaves[-1:] if whole else []
    else:
        chosen = [leaf for leaf in leaves if same(tree, leaf, expr)]
    return chosen[0] if len(chosen) == 1 and repeatable(chosen[0]) else None
