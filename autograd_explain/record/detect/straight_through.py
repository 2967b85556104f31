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
    inner, outer = getattr(node.func, "value", None), spot.source.parents.get(node)
    whole = _sum_of(inner)
    if whole is not None:
        added, first, second = whole
        found = ("stopped_sum", second, first) if added == second else None
    else:
        around = _sum_of(outer, inner if isinstance(inner, ast.BinOp) else None, node)
        found = ("swapped", *around[1:]) if around and around[0] == around[2] else None
    if found is None:
        return None
    _, value, passed = found
    assignments = assignments_around(spot)
    forth, back = spread(assignments, {value}), spread(assignments, {passed})
    return found if passed in forth and value not in back else None


def _sum_of(
    node: ast.AST | None, difference: ast.BinOp | None = None, stopped: ast.AST | None = None
) -> tuple[str, str, str] | None:
    """`c`, `b` and `a` of `c + (b - a)`; of two terms `stopped` is the one that holds the
    `difference`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return None
    for term, added in ((node.right, node.left), (node.left, node.right)):
        inner = difference if term is stopped else term
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            return ast.unparse(added), ast.unparse(inner.left), ast.unparse(inner.right)
    return None
