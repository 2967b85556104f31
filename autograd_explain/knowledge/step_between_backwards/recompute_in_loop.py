"""What is computed once before a loop, computed in every round of it."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import effects
from autograd_explain.rewrite.engine.cst_tools import calls_in, keyword
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.engine.tree import Tree, statement_at
from autograd_explain.rewrite.transforms.recompute import compute_all_in_loop, repeatable
from autograd_explain.rewrite.transforms.spot import Spot


def in_every_round(program: Program, places: Sequence[Place], inner: Place) -> Edits | None:
    """Compute the statements at `places` again in each round of the loop around `inner`, before
    their first use there; `retain_graph=True` at `inner` goes, every round has its own graph.

    Places inside the loop are passed over.  None where the loop gives what they read another value.
    """
    tree, anchor = statement_at(program, inner)
    loop = None if anchor is None else next(iter(tree.loops(anchor)), None)
    if anchor is None or loop is None:
        return None
    before = [p for p in places if not _is_inside(program, p, tree, loop)]
    edits = compute_all_in_loop(program, before, inner)
    kept = next((c for c in calls_in(anchor) if keyword(c, "retain_graph") is not None), None)
    if kept is None:
        return edits
    return then(program, edits, lambda p, at: Spot(p, at).without("retain_graph"), tree.place(kept))


def _is_inside(program: Program, place: Place, tree: Tree, loop: cst.CSTNode) -> bool:
    other, statement = statement_at(program, place)
    return other is tree and statement is not None and tree.inside(statement, loop)


def anew_for_next_round(program: Program, place: Place | None) -> Edits | None:
    """`value = next_value` at the end of a round -> `value = critic(obs)`: what was computed before
    the step is computed once more for the next round.

    None where it is computed from what the round was given, or would be another value there.
    """
    tree, own = statement_at(program, place)
    if not isinstance(own, cst.Assign) or not isinstance(own.value, cst.Name):
        return None
    name, (inside, last) = own.value.value, tree.siblings(own)
    at = [i for i, s in enumerate(inside) if i != last and effects(s).writes == {name}]
    made = inside[at[0]] if len(at) == 1 and at[0] < last else None
    if not isinstance(made, cst.Assign) or effects(made).reads & effects(own).writes:
        return None
    again = repeatable((tree, made), (tree, own), [(tree, made)])
    return Draft(tree).replace(own.value, made.value).edits() if again else None
