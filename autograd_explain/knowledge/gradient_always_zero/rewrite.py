"""The operation left out of the loss, or its gradient passed straight through."""

import ast

from autograd_explain.model import ZeroBy
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.cst_tools import filled
from autograd_explain.rewrite.engine.tree import tree_at
from autograd_explain.rewrite.transforms.call_edits import (
    call_behind,
    expression_replaced,
    keyword_removed,
)
from autograd_explain.rewrite.transforms.detach import detached_at
from autograd_explain.rewrite.transforms.passed_through import passed_straight_through
from autograd_explain.rewrite.transforms.uncut import (
    apply_patches,
    code_of,
    node_at,
    passed_through,
    replacement,
)

from .diagnose import Details

_TWO = 2


def _left_out(site: Site[Details]) -> Edits | None:
    """`torch.round(x)` -> `x`; `torch.div(x, y, rounding_mode="floor")` -> `torch.div(x, y)`."""
    if site.details.divides:
        return keyword_removed(site.program, site.place, "rounding_mode")
    at, node = site.details.operand, node_at(site.program, site.details.operand)
    if at is None or node is None or _stands_alone(site):
        return None
    return expression_replaced(site.program, site.place, code_of(site.program, at, node))


def _straight_through(site: Site[Details]) -> Edits | None:
    tree = tree_at(site.program, site.place)
    call, operand = tree.node(site.place), tree.node(site.details.operand)
    if call is None or operand is None or site.details.divides:
        return None
    return passed_straight_through(tree, call, operand)


def _stands_alone(site: Site[Details]) -> bool:
    """Whether the call is a statement: `x.round_()`."""
    source = site.program.source_at(site.place)
    node = node_at(site.program, site.place)
    return source is None or node is None or isinstance(source.parents.get(node), ast.Expr)


def _computed_of_noise(site: Site[Details]) -> Edits | None:
    """`torch.normal(mean, std)` -> `mean + std * torch.randn_like(mean)`: the same numbers."""
    call = node_at(site.program, site.place)
    given = call.args if isinstance(call, ast.Call) and not call.keywords else []
    if site.details.function != "normal" or site.place is None or len(given) != _TWO:
        return None
    mean, std = (code_of(site.program, site.place, a) for a in given)
    like = std if isinstance(given[0], ast.Constant) else mean
    template = "{mean} + {std} * torch.randn_like({like})"
    code = filled(template, mean=mean, std=std, like=like)
    return apply_patches(replacement(site.program, site.place, code))


def _difference_detached(site: Site[Details]) -> Edits | None:
    """`z + (q - z)` -> `z + (q - z).detach()`"""
    statement, source = site.program.statement_at(site.place), site.program.source_at(site.place)
    sums = map(passed_through, ast.walk(statement) if statement is not None else ())
    sides = [inner for found in sums if found for _, other, inner in [found] if other is inner]
    if len(sides) != 1 or source is None:
        return None
    return call_behind(site.program, source.place(sides[0].lineno, None, sides[0]), "detach")


propose: Propose[Details] = by_table(
    Fix("difference", _difference_detached, when=lambda d: d.by is ZeroBy.SUM, changes=True),
    Fix("difference", _difference_detached, when=lambda d: d.by is ZeroBy.SUM),
    Fix("detach_older", lambda s: detached_at(s.program, s.details.older)),
    Fix("detach_sum", lambda s: detached_at(s.program, s.details.sum)),
    Fix("of_noise", _computed_of_noise),
    Fix("bilinear", lambda s: expression_replaced(s.program, s.details.mode, '"bilinear"')),
    Fix("left_out", _left_out, when=lambda d: d.whole),
    Fix("repair_straight_through", _straight_through),
    Fix("left_out", _left_out),
    changes=True,
)
