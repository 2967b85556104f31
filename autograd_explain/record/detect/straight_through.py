"""Straight-through sums that hand the gradient to the wrong one, or to none.

`a + (b - a).detach()` has the value of `b` and hands the gradient to `a`.  Where `a` comes of a
choice made of `b`, as a quantised value does, the sum undoes that: the choice changes no value, and
what `b` comes from gets no gradient.  `(b + (a - b)).detach()` is `a` in other words: the sum says
that `b` was to get the gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..observe.code_positions import CodePosition
from .finding import CandidateFault, Mark, Marks
from .graph_cuts import Cuts
from .number_into_loss import assignments_around, spread

Spot = Callable[[int], CodePosition | None]


def misplaced(cuts: Cuts, spot_of: Spot, since: int) -> Iterator[CandidateFault]:
    """Those whose value went into a loss after a time, with what is added as `passed` and what has
    the value as `value`."""
    for cut in cuts.traced(since):
        chosen = any(cuts.cuts[site].way == "operation" for site in cut.behind)
        found = _sum_at(spot_of(cut.site)) if chosen and cut.way == "detach" else None
        if found is not None:
            marks: Marks = {"cut": (Mark(cut.site, cut.clock),)}
            marks["backward"] = (cuts.reached[cut.site],)
            way, value, passed = found
            evidence = {"way": way, "value": value, "passed": passed}
            weights = {"parameters": tuple(cut.above.values())}
            yield CandidateFault("graph-cut", marks, {**evidence, **weights})


def _sum_at(spot: CodePosition | None) -> tuple[str, str, str] | None:
    """How it is wrong, `b` and `a`, where the text computes `a` of `b`, and not `b` of `a`."""
    node = None if spot is None else spot.node
    if spot is None or node is None or not isinstance(node, ast.Call):
        return None
    assignments = assignments_around(spot)
    for way, value, passed in _sums(node, spot.source.parents.get(node)):
        forth, back = spread(assignments, {value}), spread(assignments, {passed})
        if passed in forth and value not in back:
            return way, value, passed
    return None


def _sums(call: ast.Call, outer: ast.AST | None) -> Iterator[tuple[str, str, str]]:
    """`a + (b - a).detach()` and `(b + (a - b)).detach()`, of the call of `detach`."""
    inner = getattr(call.func, "value", None)
    for added, difference in _terms(outer):
        if difference is call and isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            if ast.unparse(added) == (passed := ast.unparse(inner.right)):
                yield "swapped", ast.unparse(inner.left), passed
    for added, difference in _terms(inner):
        if isinstance(difference, ast.BinOp) and isinstance(difference.op, ast.Sub):
            if ast.unparse(added) == (value := ast.unparse(difference.right)):
                yield "stopped_sum", value, ast.unparse(difference.left)


def _terms(node: ast.AST | None) -> list[tuple[ast.expr, ast.expr]]:
    """The two terms of a sum, in both orders."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return []
    return [(node.left, node.right), (node.right, node.left)]
