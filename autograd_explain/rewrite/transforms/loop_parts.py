"""Parts of a tensor in a loop or a comprehension, and who else may look at them."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from ..analysis.effects import is_own_variable, iterated, read_later
from ..analysis.inplace_names import words
from ..engine.cst_tools import called_name, clauses, unpacked, walk
from ..engine.tree import Statement, Tree


def part_is_unseen(tree: Tree, statement: Statement, node: cst.Name) -> bool:
    """Whether this one expression uses a part that a loop over the parts of a tensor takes, so that
    nobody sees what shape it is given: `[h.squeeze_(0) for h in x.split(1)]`."""
    for around in tree.ancestors(node):
        parts = _taken(around, node.value)
        if isinstance(around, cst.BaseComp) and parts is not None:
            bound = {id(n) for f in clauses(around) for n in walk(f.target)}
            alone = len(_uses(around, node.value, bound)) == 1
            if not isinstance(parts, cst.Name):
                return alone
            own = is_own_variable(tree, statement, parts.value)
            return alone and own and not read_later(tree, statement, parts.value)
        if isinstance(around, cst.For) and isinstance(parts, cst.Call):
            alone = len(_uses(statement, node.value)) == 1
            return alone and not read_later(tree, statement, node.value)
    return False


def _uses(inside: cst.CSTNode, name: str, bound: Collection[int] = ()) -> list[cst.Name]:
    found = (n for n in walk(inside) if isinstance(n, cst.Name) and n.value == name)
    return [n for n in found if id(n) not in bound]


def _taken(around: cst.CSTNode, name: str) -> cst.Call | cst.Name | None:
    """What a name of a loop stands for the elements of: `x.split(1)`, or a list."""
    for clause in clauses(around):
        leaves = unpacked(clause.target)
        if any(isinstance(t, cst.Name) and t.value == name for t in leaves):
            assert isinstance(clause.target, cst.BaseExpression)
            made = iterated(clause.iter, clause.target, name)
            if isinstance(made, cst.Name):
                return made
            return made if isinstance(made, cst.Call) and called_name(made) in _PARTS else None
    return None


_PARTS = words("unbind chunk split split_with_sizes tensor_split hsplit vsplit dsplit")
