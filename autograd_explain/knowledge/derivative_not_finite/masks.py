"""The mask that takes values at fault out of the loss, around an operation or behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from autograd_explain.rewrite.engine.cst_tools import (
    called_name,
    called_on,
    dotted,
    elsewhere,
    expression,
    positional,
    stores,
    targets,
    walk,
    whole_value,
)
from autograd_explain.rewrite.engine.tree import Statement, Tree

_MAX_STATEMENTS = 4
_YES_OR_NO = frozenset("isnan isfinite isinf bool logical_not logical_and logical_or".split())
_NUMBERS = ("float", "double", "to", "int", "long")
_CALLED = ("mask", "valid")  #: what is told of a parameter by its name alone
#: What a mask may call where it is computed once more.
_TESTS = _YES_OR_NO | {*_NUMBERS}


@dataclass(frozen=True, eq=False)
class Mask:
    """`kept` says that the values stay where the condition holds, `factor` that it is multiplied
    with."""

    condition: cst.BaseExpression
    kept: bool
    factor: bool = False


def mask_behind(tree: Tree, node: cst.BaseExpression) -> Mask | None:
    """The mask that a value at `node` goes through in its statement, or under the names
    that it is given, where the mask is known by then: `torch.where(m, f(x), y)`, `f(x)[m]`,
    `f(x).masked_fill(m, 0)`, `f(x) * m`."""
    own = tree.statement_of(node)
    if own is None:
        return None
    found = [
        mask
        for value in _under_names(tree, node, own, _MAX_STATEMENTS)
        for mask in _masks(tree, value)
        if own is tree.statement_of(value) or _is_known(tree, mask.condition, own)
    ]
    return min(found, key=lambda mask: mask.factor, default=None)


def _under_names(
    tree: Tree, node: cst.BaseExpression, own: Statement, most: int
) -> Iterator[cst.BaseExpression]:
    yield node
    given = whole_value(own)
    target = targets(own)[0] if given is not None and targets(own) else None
    if not most or given is None or not isinstance(target, cst.Name):
        return
    for read in elsewhere(tree, target):
        later = tree.statement_of(read)
        if later is not None and tree.start(later) > tree.start(own):
            yield from _under_names(tree, read, later, most - 1)


def _masks(tree: Tree, node: cst.BaseExpression) -> Iterator[Mask]:
    for inner, outer in pairwise(tree.path(node)):
        if isinstance(outer, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return
        if isinstance(outer, cst.Call) and (mask := _of_call(outer, inner)) is not None:
            yield mask
        elif isinstance(outer, cst.Subscript) and outer.value is inner and len(outer.slice) == 1:
            index = outer.slice[0].slice
            if isinstance(index, cst.Index) and _is_condition(tree, index.value):
                yield Mask(index.value, kept=True)
        elif isinstance(outer, cst.BinaryOperation) and isinstance(outer.operator, cst.Multiply):
            factor = outer.right if outer.left is inner else outer.left
            if _is_condition(tree, factor):
                yield Mask(expression("{m} != 0", m=factor), kept=True, factor=True)


def _of_call(call: cst.Call, inner: cst.CSTNode) -> Mask | None:
    given = positional(call)
    if called_name(call) == "where" and len(given) == 3 and any(inner is g for g in given[1:]):
        return Mask(given[0].value, inner is given[1])
    if called_name(call) == "masked_fill" and inner is call.func and given:
        return Mask(given[0].value, kept=False)
    return None


def _is_condition(tree: Tree, node: cst.BaseExpression, most: int = _MAX_STATEMENTS) -> bool:
    """Whether an expression says of each element yes or no, as far as the text shows."""
    if isinstance(node, (cst.Comparison, cst.UnaryOperation)):
        return isinstance(node, cst.Comparison) or isinstance(node.operator, cst.BitInvert)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.BitAnd, cst.BitOr)):
        return _is_condition(tree, node.left, most) and _is_condition(tree, node.right, most)
    if isinstance(node, cst.Call):
        owner = called_on(node, *_NUMBERS)
        return called_name(node) in _YES_OR_NO or (
            owner is not None and _is_condition(tree, owner, most)
        )
    name = dotted(node) or ""
    given = (s for s in tree.statements if any(dotted(t) == name for t in targets(s)))
    values = [value for s in given if (value := whole_value(s)) is not None]
    if values:
        return most > 0 and all(_is_condition(tree, v, most - 1) for v in values)
    return any(word in name.lower() for word in _CALLED)


def _is_known(tree: Tree, condition: cst.BaseExpression, own: Statement) -> bool:
    """Whether a mask can be computed before a statement, and is the same by then."""
    calls = (n for n in walk(condition) if isinstance(n, cst.Call))
    if any(called_name(call) not in _TESTS for call in calls):
        return False
    names = {n.value for n in walk(condition) if isinstance(n, cst.Name)}
    scope = tree.scope_of(own)
    later = [
        s for s in tree.statements if tree.scope_of(s) is scope and tree.start(s) >= tree.start(own)
    ]
    return not any(isinstance(n, cst.Name) and n.value in names for s in later for n in stores(s))
