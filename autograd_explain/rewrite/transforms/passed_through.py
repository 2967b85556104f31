"""The gradient passed straight through what rounds, compares or picks: its value stays, in backward
it counts as what it was computed of."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Edits
from ..analysis.effects import fresh
from ..analysis.inplace_writes import without_ends
from ..engine.cst_tools import (
    bare,
    called_name,
    dotted,
    elsewhere,
    expression,
    head,
    make,
    repeatable,
    targets,
)
from ..engine.draft import Draft
from ..engine.imports import Imports
from ..engine.tree import Statement, Tree

#: What gives a value of the form of what it is given, and what picks places in it.
_STEPS = frozenset("round sign floor ceil trunc bernoulli heaviside sgn".split())
_PICKS = frozenset("argmax argmin topk sort max min".split())
#: The places are the second result, and the first has a gradient.
WITH_VALUES = frozenset("topk sort max min".split())
#: What makes ones at such places, and what leaves a value as it is but for its type or form.
_ONES = frozenset("one_hot scatter scatter_".split())
_CONVERSIONS = frozenset("float double half bfloat16 long int to type type_as unsqueeze".split())
_ORDERS = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_DECIDES = (
    *(cst.If, cst.While, cst.Assert, cst.IfExp, cst.CompIf),
    *(cst.BooleanOperation, cst.UnaryOperation),
)
_WISH = "value"


def steps_in(
    tree: Tree, imports: Imports, statement: Statement
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What has a step for a slope in a statement, `p > 0.5`, `p.argmax(-1)`, `torch.round(p)`, each
    with the operand `p`; not what only decides where the program goes on."""
    for node in head(statement):
        if isinstance(node, (cst.Call, cst.Comparison)):
            operand = _operand(imports, node)
            if operand is not None and not isinstance(tree.parents[node], _DECIDES):
                yield node, operand


def _operand(imports: Imports, node: cst.Call | cst.Comparison) -> cst.BaseExpression | None:
    if isinstance(node, cst.Comparison):
        signs = [c.operator for c in node.comparisons]
        return node.left if len(signs) == 1 and isinstance(signs[0], _ORDERS) else None
    if called_name(node) not in _STEPS | _PICKS:
        return None
    if isinstance(node.func, cst.Attribute) and not imports.full(dotted(node.func)):
        return node.func.value
    return node.args[0].value if node.args else None


def passed_straight_through(
    tree: Tree, step: cst.BaseExpression, operand: cst.BaseExpression
) -> Edits | None:
    """`F.one_hot(p.argmax(-1), n)` -> `p + (F.one_hot(p.argmax(-1), n) - p).detach()`; what picks
    places has to be made ones, in this statement or where its name is read."""
    whole = _whole(tree, step)
    own, picks = tree.statement_of(step), called_name(step) in _PICKS and whole is step
    if own is None or picks or isinstance(tree.parents[whole], cst.Expr):
        return None
    draft, value, now = Draft(tree), without_ends(operand), whole
    if not repeatable(value):
        value = cst.Name(fresh(tree, own, _WISH))
        draft.before(own, [make("{x} = {y}", x=value, y=bare(without_ends(operand)))])
        if tree.inside(step, whole):
            now = whole.deep_replace(operand, value)
        else:
            draft.replace(operand, value)
    return draft.replace(whole, expression("{x} + ({f} - {x}).detach()", x=value, f=now)).edits()


def _whole(tree: Tree, step: cst.BaseExpression) -> cst.BaseExpression:
    """The outermost expression that only makes a number of a step, or ones of the places picked."""
    found = node = step
    while True:
        parent = tree.parents[node]
        call = tree.parents[parent] if isinstance(parent, (cst.Attribute, cst.Arg)) else None
        if isinstance(call, cst.Call) and _goes_on(call, node):
            found = node = call
        elif (read := _one_read(tree, node)) is not None:
            node = read
        else:
            return found


def _goes_on(call: cst.Call, node: cst.BaseExpression) -> bool:
    if isinstance(call.func, cst.Attribute) and call.func.value is node:
        return called_name(call) in _CONVERSIONS
    return called_name(call) in _ONES and any(a.value is node for a in call.args)


def _one_read(tree: Tree, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Where the name that a statement gives an expression is read in the same scope, if once."""
    own = tree.statement_of(node)
    target = targets(own)[0] if isinstance(own, cst.Assign) and len(own.targets) == 1 else None
    if not isinstance(own, cst.Assign) or own.value is not node:
        return None
    if isinstance(target, cst.Tuple) and called_name(node) in WITH_VALUES:
        target = target.elements[1].value if len(target.elements) == 2 else None
    if not isinstance(target, cst.Name):
        return None
    found = list(elsewhere(tree, target))
    return found[0] if len(found) == 1 and tree.start(found[0]) > tree.start(own) else None
