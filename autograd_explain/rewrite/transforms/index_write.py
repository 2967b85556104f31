"""`x[mask] = v` -> masked_fill, or a write into a copy."""

from __future__ import annotations

import libcst as cst

from ...model import Place
from ...program import Program
from ..analysis.effects import can_rebind
from ..analysis.inplace_writes import inplace_calls, is_view, without_data, written_places
from ..engine.cst_tools import is_number, repeatable, same
from ..engine.cst_tools import statement as make
from ..engine.draft import Draft
from ..engine.imports import imports_at
from ..engine.proposal import Edits
from ..engine.tree import Tree, tree_at
from .clone import clone_before_write
from .out_of_place import out_of_place


def functional_write(program: Program, place: Place, target: str | None = None) -> Edits | None:
    """An index assignment that leaves the old tensor alone.

    Where the text shows a boolean mask (`x[x < 0] = 0`): `x = x.masked_fill(mask, v)`.  Otherwise
    `x = x.clone()` goes on a line before the write, which is right for every index and value.
    """
    tree = tree_at(program, place)
    for statement in tree.candidates(place):
        if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
            draft = _masked(program, tree, statement, target)
            if draft is not None:
                return draft.edits()
    return clone_before_write(program, place, target) if _writes_part(program, place) else None


def new_tensor(program: Program, place: Place) -> Edits | None:
    """A new tensor instead of the write at a place, to the whole or to a part of it."""
    return out_of_place(program, place) or functional_write(program, place)


def _writes_part(program: Program, place: Place) -> bool:
    """Whether the place writes to a part of a tensor: by item, or through `x[0].add_(1)`."""
    tree = tree_at(program, place)
    imports = imports_at(program, place)
    for statement in tree.candidates(place):
        places = [*written_places(statement)]
        places += [c.target for c in inplace_calls(tree, imports, statement)]
        if any(is_view(p) for p in places):
            return True
    return False


def _masked(
    program: Program, tree: Tree, statement: cst.Assign, target: str | None
) -> Draft | None:
    item = statement.targets[0].target
    if not isinstance(item, cst.Subscript) or len(item.slice) != 1:
        return None
    written, index = without_data(item.value), item.slice[0].slice
    if target is not None and not same(tree, written, target):
        return None
    if not isinstance(index, cst.Index) or not isinstance(written, (cst.Name, cst.Attribute)):
        return None
    mask, value = index.value, statement.value
    if not _compares(tree, mask, written) or not is_number(value):
        return None
    if not repeatable(written) or not can_rebind(program, tree, statement, written):
        return None
    new = make("{x} = {x}.masked_fill({m}, {v})", x=written, m=mask, v=value)
    return Draft(tree).instead(statement, [new])


def _compares(tree: Tree, mask: cst.BaseExpression, written: cst.BaseExpression) -> bool:
    """Whether the text alone shows a mask of x's own shape: `x < 0`, `(x < 0) | (x > 1)`."""
    if isinstance(mask, cst.UnaryOperation) and isinstance(mask.operator, cst.BitInvert):
        return _compares(tree, mask.expression, written)
    if isinstance(mask, cst.BinaryOperation) and isinstance(
        mask.operator, (cst.BitAnd, cst.BitOr, cst.BitXor)
    ):
        return _compares(tree, mask.left, written) and _compares(tree, mask.right, written)
    if not isinstance(mask, cst.Comparison) or len(mask.comparisons) != 1:
        return False
    operator = mask.comparisons[0].operator
    if isinstance(operator, (cst.In, cst.NotIn, cst.Is, cst.IsNot)):
        return False
    return same(tree, mask.left, tree.code(written)) and is_number(mask.comparisons[0].comparator)
