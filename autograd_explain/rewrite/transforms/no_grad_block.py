"""Blocks in which gradients are off, seen from a statement inside."""

from __future__ import annotations

import libcst as cst

from ..engine.cst_tools import same, targets, unpacked, walk
from ..engine.imports import Imports
from ..engine.tree import Statement, Tree
from .grad_mode import is_off


def blocks_around(tree: Tree, imports: Imports, statement: Statement) -> list[cst.With]:
    """The `with torch.no_grad():` blocks of the function around a statement, innermost first."""
    found: list[cst.With] = []
    for ancestor in tree.ancestors(statement):
        if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            break
        if isinstance(ancestor, cst.With) and is_off(imports, ancestor):
            found.append(ancestor)
    return found


def outermost_block(
    tree: Tree, imports: Imports, statement: Statement, name: cst.BaseExpression
) -> Statement:
    """The statement before which `name = name.clone()` keeps the graph: the no_grad block around
    `statement`, unless the name gets its value in there; else `statement` itself."""
    found = statement
    for block in blocks_around(tree, imports, statement):
        if _binds(tree, block, name):
            break
        found = block
    return found


def _binds(tree: Tree, block: cst.With, name: cst.BaseExpression) -> bool:
    """Whether the block gives the name, or what its path begins with, a value."""
    code = tree.code(name)
    first = code.replace("[", ".").split(".")[0]
    return any(
        same(tree, leaf, code) or same(tree, leaf, first)
        for node in walk(block)
        if isinstance(node, (cst.Assign, cst.AnnAssign, cst.For, cst.With))
        for target in targets(node)
        for leaf in unpacked(target)
    )
