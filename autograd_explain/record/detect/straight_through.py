"""Straight-through sums the wrong way round: `a + (b - a).detach()` has the value of `b` and hands
the gradient to `a`.  Where `a` comes of a choice made of `b`, as a quantised value does, the sum
undoes that: the choice changes no value, and what `b` comes from gets no gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..observe.code_positions import CodePosition
from .finding import CandidateFault, Mark, Marks
from .graph_cuts import Cuts
from .number_into_loss import assignments_around, spread

Spot = Callable[[int], CodePosition | None]


def swapped(cuts: Cuts, spot_of: Spot, since: int) -> Iterator[CandidateFault]:
    """Those whose value went into a loss after a time, with what is added as `passed` and what has
    the value as `value`."""
    for cut in cuts.traced(since):
        chosen = any(cuts.cuts[site].way == "operation" for site in cut.behind)
        found = _swapped_at(spot_of(cut.site)) if chosen and cut.way == "detach" else None
        if found is not None:
            marks: Marks = {"cut": (Mark(cut.site, cut.clock),)}
            marks["backward"] = (cuts.reached[cut.site],)
            value, passed = found
            evidence = {"way": "swapped", "value": value, "passed": passed}
            weights = {"parameters": tuple(cut.above.values())}
            yield CandidateFault("graph-cut", marks, {**evidence, **weights})


def _swapped_at(spot: CodePosition | None) -> tuple[str, str] | None:
    """`b` and `a` of `a + (b - a).detach()` where the text computes `a` of `b`, and not `b` of
    `a`."""
    node = None if spot is None else spot.node
    if spot is None or node is None or not isinstance(node, ast.Call):
        return None
    inner = getattr(node.func, "value", None)
    outer = spot.source.parents.get(node)
    if not isinstance(inner, ast.BinOp) or not isinstance(outer, ast.BinOp):
        return None
    if not isinstance(inner.op, ast.Sub) or not isinstance(outer.op, ast.Add):
        return None
    value, passed = ast.unparse(inner.left), ast.unparse(inner.right)
    added = outer.left if outer.right is node else outer.right
    if ast.unparse(added) != passed:
        return None
    assignments = assignments_around(spot)
    forth, back = spread(assignments, {value}), spread(assignments, {passed})
    return (value, passed) if passed in forth and value not in back else None
