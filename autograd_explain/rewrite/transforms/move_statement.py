"""Statements moved, where the names in between allow it."""

from __future__ import annotations

import re
from functools import partial
from itertools import takewhile

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ...program_index import index_of
from ..analysis.effects import Effects, bound_in, effects, reads_any
from ..engine.draft import Drafts
from ..engine.tree import Statement, Tree, statement_at, statements_in, tree_at, tree_of


def move(
    program: Program,
    place: Place | None,
    goal: Place | None,
    last_place: Place | None = None,
    *,
    after: bool,
    checked: bool = True,
    unseen: bool = False,
) -> Edits | None:
    """Move the statement at `place` (or the run up to `last_place`) behind the one at the goal, or
    to right before it.

    Within one block, or between cells at the top level; where the goal stands deeper, in a loop,
    the statement goes behind or before the loop.  None where a statement in between reads or writes
    what the moved one writes, or writes what it reads, unless that is not `checked` (then it only
    goes ahead of nothing that gives a name it reads a value, and no block of what reads a name that
    it binds); where what a call changes is to be `unseen` by the goal, that one may read it.
    """
    tree, other = tree_at(program, place), tree_at(program, goal)
    run = run_between(tree, tree.statement(place), tree.statement(last_place or place))
    target = other.statement(goal)
    if not run or target is None:
        return None
    run = _with_blocks(tree, run, target) if tree is other else run
    found = in_order(tree, run[0], other, target)
    if found is None or found[1] in run:
        return None
    order, level = found
    start, end, at = map(order.index, (run[0], run[-1], level))
    between = order[end + 1 : at + after] if at > end else order[at + after : start]
    if (tree is other and not between) or (checked and not _may_pass(run, between, unseen)):
        return None
    if any(effects(s).barrier for s in run):
        return None
    pairs = [(s, b) for s in run for b in between] if at < start else []
    if any(_needs(s, b, checked) or _in_the_way(s, b) for s, b in pairs):
        return None
    drafts = Drafts()
    drafts[tree].move(run, level, after, drafts[other])
    return drafts.edits()


move_after, move_before = partial(move, after=True), partial(move, after=False)


def run_between(tree: Tree, first: Statement | None, last: Statement | None) -> list[Statement]:
    """The statements from `first` to `last`; [] where they are not in one block, in this order."""
    block = None if first is None else tree.block_of(first)
    if first is None or last is None or block is None or block is not tree.block_of(last):
        return []
    inside, start = tree.siblings(first)
    return inside[start : inside.index(last) + 1]


def _needs(statement: Statement, earlier: Statement, checked: bool = True) -> bool:
    """Whether it reads a name that an earlier one binds, and that it does not bind as a block.

    Not `checked` it may change a part of what the earlier one takes and binds anew: `batch.pos` is
    known to be the same before `batch = with_lengths(batch)`.
    """
    small, changed = isinstance(statement, cst.BaseSmallStatement), effects(statement).writes
    own = set() if small else bound_in(statement)
    if not checked and changed and all("." in path for path in changed):
        own = own | effects(earlier).reads
    return reads_any(statement, bound_in(earlier) - own)


def _in_the_way(block: Statement, passed: Statement) -> bool:
    """Whether a block binds a name that what it passes reads; an assignment is moved for that."""
    return isinstance(block, cst.BaseCompoundStatement) and _needs(passed, block)


def _may_pass(run: list[Statement], between: list[Statement], unseen: bool) -> bool:
    """Whether a run is independent of what it passes, but for what the last of it may read."""
    if not unseen or not between or not all(isinstance(s, cst.Expr) for s in run):
        return independent(run, between)
    last = effects(between[-1])
    changed = Effects(writes=last.writes, barrier=last.barrier)
    alone = not any(changed.conflicts(effects(s)) for s in run)
    return alone and independent(run, between[:-1])


def _with_blocks(tree: Tree, run: list[Statement], target: Statement) -> list[Statement]:
    """The run, or the `with`, `if` and `for` blocks around it that the target stands outside of.

    `with torch.no_grad(): for p in params: p -= lr * p.grad` moves as a whole.
    """
    outer: Statement | None = run[0]
    while outer is not None and lifted(tree, target, tree.block_of(outer)) is None:
        outer = tree.outer(outer)
        if not isinstance(outer, (cst.With, cst.If)) and not _only_updates(outer):
            return run
    return run if outer is None or outer is run[0] else [outer]


def _only_updates(loop: cst.CSTNode | None) -> bool:
    """A `for` whose body gives no name another value: `for p in params: p -= lr * p.grad`."""
    return isinstance(loop, cst.For) and all(
        isinstance(s, (cst.AugAssign, cst.Expr)) for s in statements_in(loop.body)
    )


def in_order(
    tree: Tree, statement: Statement, other: Tree, target: Statement
) -> tuple[list[Statement], Statement] | None:
    """Statements in the order they ran in, from one to what holds the target among them: those of
    its block, or of the top levels of the cells from its own to that of the target."""
    level = lifted(other, target, tree.block_of(statement) if tree is other else other.module)
    if level is None or tree is other:
        return None if level is None else (tree.siblings(statement)[0], level)
    runs, known = index_of(tree.program).runs, {tree.source: tree, other.source: other}
    ran = sorted(runs.index(source) for source in known if source in runs)
    if tree.block_of(statement) is not tree.module or len(ran) < 2:
        return None
    first, last = ran
    trees = [known.get(s) or tree_of(tree.program, s) for s in runs[first : last + 1]]
    found = [s for between in trees for s in statements_in(between.module)]
    return (found, level) if all(between.parsed for between in trees) else None


def lifted(tree: Tree, statement: Statement, block: cst.CSTNode | None) -> Statement | None:
    """The statement of `block` that holds this one (or is it), without leaving a function."""
    found = statement
    while tree.block_of(found) is not block:
        outer = tree.outer(found)
        if outer is None or isinstance(outer, (cst.FunctionDef, cst.ClassDef)):
            return None
        found = outer
    return found


def independent(run: list[Statement], others: list[Statement]) -> bool:
    """Whether a run may change places with other statements, as far as names tell."""
    own = [effects(s) for s in run]
    return not any(e.conflicts(effects(other)) for other in others for e in own)


def toggled_run(program: Program, place: Place) -> tuple[Place, Place] | None:
    """The run around a statement that is switched on before and off after.

    `freeze(D, True)` … `freeze(D, False)`, `D.eval()` … `D.train()`: two neighbours that differ in
    one True/False (or are such a pair of methods).  The places of its first and last statement,
    those of the statement itself where nothing is switched.
    """
    tree, statement = statement_at(program, place)
    inside, at = tree.siblings(statement)
    if not inside:
        return None
    pairs = zip(reversed(inside[:at]), inside[at + 1 :], strict=False)
    around = sum(1 for _ in takewhile(lambda pair: _toggles(tree, *pair), pairs))
    return tree.place(inside[at - around]), tree.place(inside[at + around])


def _toggles(tree: Tree, before: Statement, after: Statement) -> bool:
    left, right = (re.findall(r"\w+|\S", tree.code(s)) for s in (before, after))
    if len(left) != len(right):
        return False
    different = [pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]]
    pairs = {("True", "False"), ("False", "True"), ("eval", "train")}
    return len(different) == 1 and different[0] in pairs
