"""What is computed once before a loop, computed in every round of it."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import effects, reads_any, takes_next
from autograd_explain.rewrite.engine.cst_tools import head, keyword, without
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import (
    Statement,
    Tree,
    statement_at,
    statements_in,
    tree_at,
)
from autograd_explain.rewrite.transforms.move_statement import lifted
from autograd_explain.rewrite.transforms.recompute import repeatable

_Loop = cst.For | cst.While
#: Methods after which a container holds other things.
_FILLING = frozenset(
    "append appendleft extend insert pop popleft clear update remove push add".split()
)


def in_every_round(program: Program, places: Sequence[Place], inner: Place) -> Edits | None:
    """Compute the statements at `places` again in each round of the loop around `inner`, before
    their first use there; `retain_graph=True` at `inner` goes, every round has its own graph.

    Places inside the loop are passed over.  A statement whose value the program needs before the
    loop as well (a baseline, an advantage) stays there too.  None where the loop gives what they
    read another value.
    """
    tree, anchor = statement_at(program, inner)
    if anchor is None or any(tree_at(program, p) is not tree for p in places):
        return None
    loop = next((a for a in tree.ancestors(anchor) if isinstance(a, (cst.For, cst.While))), None)
    if loop is None:
        return None
    found = [s for p in places if (s := tree.statement(p)) and not tree.inside(s, loop)]
    made = [s for s in found if isinstance(s, (cst.Assign, cst.AnnAssign))]
    if not made or len(made) != len(found):
        return None
    between = _between(tree, made, loop)
    first = _first_use(loop, made)
    if between is None or first is None or not _may_repeat(made, between, loop):
        return None
    draft = Draft(tree)
    kept = _still_needed(made, between)
    for statement in made:
        if any(statement is k for k in kept):
            draft.before(first, [statement])
        else:
            draft.before(first, [draft.piece(statement)])
            draft.remove(statement)
    _drop_retain(draft, anchor)
    return draft.edits()


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
    again = repeatable(program, (tree, made), (tree, own), [(tree, made)])
    return Draft(tree).replace(own.value, made.value).edits() if again else None


def _between(tree: Tree, made: Sequence[Statement], loop: _Loop) -> list[Statement] | None:
    """What runs from the first of the statements to the loop, in the block of both."""
    block = tree.block_of(made[0])
    level = lifted(tree, loop, block)
    if block is None or level is None or any(tree.block_of(s) is not block for s in made):
        return None
    inside = statements_in(block)
    at = {id(s): i for i, s in enumerate(inside)}
    if any(at[id(s)] >= at[id(level)] for s in made):
        return None
    return inside[at[id(made[0])] : at[id(level)]]


def _first_use(loop: _Loop, made: Sequence[Statement]) -> Statement | None:
    """The statement of the loop's own block that first reads a value; None where the loop's head
    does."""
    names = _names(made)
    heads = [loop.iter if isinstance(loop, cst.For) else loop.test]
    if any(reads_any(node, names) for node in heads):
        return None
    return next((s for s in statements_in(loop.body) if reads_any(s, names)), None)


def _may_repeat(made: Sequence[Statement], between: list[Statement], loop: _Loop) -> bool:
    """Whether the statements compute the same there, but for what the rounds train."""
    own = [effects(s) for s in made]
    if any(e.barrier or e.reads & e.writes for e in own) or any(map(takes_next, made)):
        return False
    read = {name for e in own for name in e.reads} - _names(made)
    others = [s for s in between if not any(s is m for m in made)]
    written = {w for s in others for w in effects(s).writes} | _bound_in(loop)
    return not any(f"{name}.".startswith(f"{w}.") for name in read for w in written)


def _bound_in(loop: _Loop) -> set[str]:
    """The names the loop gives values or writes; other calls for their effect (`opt.step()`)
    train, no more."""
    found = effects(loop.target).reads if isinstance(loop, cst.For) else set()
    for statement in statements_in(loop.body):
        if not isinstance(statement, cst.Expr) or _called(statement) in _FILLING:
            found = found | effects(statement).writes
        else:
            found = found | effects(statement.value).writes
    return found


def _called(statement: cst.Expr) -> str:
    function = statement.value.func if isinstance(statement.value, cst.Call) else None
    return function.attr.value if isinstance(function, cst.Attribute) else ""


def _still_needed(made: Sequence[Statement], between: list[Statement]) -> list[Statement]:
    """Those of the statements whose values something before the loop reads."""
    others = [s for s in between if not any(s is m for m in made)]
    kept: list[Statement] = []
    for statement in reversed(made):
        if any(reads_any(s, _names([statement])) for s in (*others, *kept)):
            kept.append(statement)
    return kept


def _names(made: Sequence[Statement]) -> set[str]:
    return {name for s in made for name in effects(s).writes}


def _drop_retain(draft: Draft, statement: Statement) -> None:
    for node in head(statement):
        kept = keyword(node, "retain_graph") if isinstance(node, cst.Call) else None
        if isinstance(node, cst.Call) and kept is not None:
            draft.replace(node, without(node, kept))
