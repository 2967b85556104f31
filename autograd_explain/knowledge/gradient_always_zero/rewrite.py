"""The operation left out of the loss, or its gradient passed straight through."""

import ast

from autograd_explain.model import ZeroBy
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.detach import detached_at
from autograd_explain.rewrite.transforms.passed_through import passed_straight_through
from autograd_explain.rewrite.transforms.uncut import passed_through

from .diagnose import Details


def _left_out(site: Site[Details]) -> Edits | None:
    """`torch.round(x)` -> `x`; `torch.div(x, y, rounding_mode="floor")` -> `torch.div(x, y)`."""
    if site.details.divides:
        return site.without("rounding_mode")
    if isinstance(site.outer, ast.Expr):
        return None  # `x.round_()`
    return site.replaced("{operand}", operand=site.details.operand)


def _straight_through(site: Site[Details]) -> Edits | None:
    tree = site.tree
    call, operand = tree.node(site.place), tree.node(site.details.operand)
    if call is None or operand is None or site.details.divides:
        return None
    return passed_straight_through(tree, call, operand)


def _computed_of_noise(site: Site[Details]) -> Edits | None:
    """`torch.normal(mean, std)` -> `mean + std * torch.randn_like(mean)`: the same numbers."""
    call = site.call
    given = call.args if call is not None and not call.keywords else []
    if site.details.function != "normal" or len(given) != 2:
        return None
    mean, std = (site.code(a) for a in given)
    like = "{std}" if isinstance(given[0], ast.Constant) else "{mean}"
    noisy = f"{{mean}} + {{std}} * torch.randn_like({like})"
    return site.replaced(noisy, mean=mean, std=std)


def _difference_detached(site: Site[Details]) -> Edits | None:
    """`z + (q - z)` -> `z + (q - z).detach()`"""
    sums = map(passed_through, ast.walk(site.statement or ast.Pass()))
    sides = [inner for found in sums if found for _, other, inner in [found] if other is inner]
    return site.of(sides[0]).called("detach") if len(sides) == 1 else None


propose: Propose[Details] = by_table(
    Fix("difference", _difference_detached, when=lambda d: d.by is ZeroBy.SUM),
    Fix("detach_older", lambda s: detached_at(s.program, s.details.older)),
    Fix("detach_sum", lambda s: detached_at(s.program, s.details.sum)),
    Fix("of_noise", _computed_of_noise),
    Fix("bilinear", lambda s: s.at(s.details.mode).replaced('"bilinear"')),
    Fix("left_out", _left_out, when=lambda d: d.whole),
    Fix("repair_straight_through", _straight_through),
    Fix("left_out", _left_out),
    changes=True,
)
