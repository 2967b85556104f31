"""`x[mask] = v` -> masked_fill, torch.where, or a write into a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import libcst as cst

from ...model import Place
from ...program import Program
from ..analysis.effects import can_rebind
from ..analysis.inplace_writes import inplace_calls, is_view, without_data, written_places
from ..engine.cst_tools import expression, is_number, method, repeatable, same
from ..engine.cst_tools import statement as make
from ..engine.draft import Draft
from ..engine.imports import imports_at
from ..engine.proposal import Edits
from ..engine.tree import Tree, tree_at
from .clone import clone_before_write


@dataclass(frozen=True)
class IndexFacts:
    """What live objects say about `x[index] = value`; None where it is not known.

    `mask`: the index is one boolean tensor, with `missing` dimensions fewer than x (rows chosen by
    a mask: 1).  `value`: a number or 0-dimensional tensor, a tensor of x's shape, or a tensor
    with one element per True (in that order).
    """

    mask: bool | None = None
    missing: int = 0
    value: Literal["scalar", "same_shape", "selected"] | None = None


def functional_write(
    program: Program, place: Place, target: str | None = None, facts: IndexFacts | None = None
) -> Edits | None:
    """An index assignment that leaves the old tensor alone.

    Where `facts` (or the text: `x[x < 0] = 0`) show a boolean mask: `x = x.masked_fill(mask, v)` or
    `x = torch.where(mask, v, x)`.  Otherwise `x = x.clone()` goes on a line before the write,
    which is right for every index and value.
    """
    facts = facts or IndexFacts()
    tree = tree_at(program, place)
    for statement in tree.candidates(place):
        if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
            draft = _masked(program, place, tree, statement, target, facts)
            if draft is not None:
                return draft.edits()
    return clone_before_write(program, place, target) if _writes_part(program, place) else None


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
    program: Program,
    place: Place,
    tree: Tree,
    statement: cst.Assign,
    target: str | None,
    facts: IndexFacts,
) -> Draft | None:
    item = statement.targets[0].target
    if not isinstance(item, cst.Subscript) or len(item.slice) != 1:
        return None
    written, index = without_data(item.value), item.slice[0].slice
    if target is not None and not same(tree, written, target):
        return None
    if not isinstance(index, cst.Index) or not _is_tensor_name(written):
        return None
    mask = index.value
    known = facts.mask if facts.mask is not None else _compares(tree, mask, written)
    if not known or not can_rebind(program, tree, statement, written):
        return None
    value = _masked_value(program, place, statement, written, mask, facts)
    if value is None:
        return None
    draft = Draft(tree)
    draft.instead(statement, [make("{x} = {v}", x=written, v=value)])
    return draft


def _masked_value(
    program: Program,
    place: Place,
    statement: cst.Assign,
    written: cst.BaseExpression,
    mask: cst.BaseExpression,
    facts: IndexFacts,
) -> cst.BaseExpression | None:
    if facts.missing:
        mask = _widened(mask, facts.missing)
    if facts.value == "scalar" or (facts.value is None and is_number(statement.value)):
        return expression("{x}.masked_fill({m}, {v})", x=written, m=mask, v=statement.value)
    torch = imports_at(program, place).local("torch")
    if facts.value == "same_shape" and torch is not None:
        return expression(
            f"{torch}.where({{m}}, {{v}}, {{x}})", x=written, m=mask, v=statement.value
        )
    if facts.value == "selected" and not facts.missing:
        return expression("{x}.masked_scatter({m}, {v})", x=written, m=mask, v=statement.value)
    return None


def _widened(mask: cst.BaseExpression, missing: int) -> cst.BaseExpression:
    """A mask over rows, with dimensions added behind so that it applies to whole rows."""
    for _ in range(missing):
        mask = method(mask, "unsqueeze(-1)")
    return mask


def _is_tensor_name(written: cst.BaseExpression) -> bool:
    return isinstance(written, (cst.Name, cst.Attribute)) and repeatable(written)


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
