"""All writes of one function to one leaf put under `torch.no_grad()`."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import iterated
from autograd_explain.rewrite.analysis.written_target import written_parts
from autograd_explain.rewrite.engine.cst_tools import same, single_targets, walk
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import (
    Statement,
    Tree,
    statement_at,
    statements_in,
)
from autograd_explain.rewrite.transforms.grad_mode import (
    is_off,
    last_update,
)
from autograd_explain.rewrite.transforms.move_statement import run_between

_NOT_INSIDE = (cst.Yield, cst.Global, cst.Nonlocal)


def writes_under_no_grad(program: Program, place: Place, names: Iterable[str]) -> Edits | None:
    """The write at `place`, the updates by hand behind it, and the function's later writes to the
    same tensor, which has one of `names`: each would be refused in turn.

    None where `under_no_grad` has none, or where no other write is found.
    """
    tree, first = statement_at(program, place)
    guard = tree.imports.local("torch.no_grad")
    if first is None or guard is None:
        return None
    writes = [first, *_later(tree, first, names)]
    writes = [w for w in writes if not any(is_off(tree.imports, s) for s in _around(tree, w))]
    if len(writes) < 2 or writes[0] is not first:
        return None
    last = tree.statement(last_update(program, place)) or first
    runs = _runs(tree, writes, run_between(tree, first, last) or [first])
    if any(isinstance(n, _NOT_INSIDE) for run in runs for s in run for n in walk(s)):
        return None
    draft = Draft(tree)
    for run in runs:
        draft.wrap(run[0], run[-1], guard)
    return draft.edits()


def _around(tree: Tree, statement: Statement) -> list[cst.CSTNode]:
    return [statement, *tree.ancestors(statement)]


def _later(tree: Tree, first: Statement, names: Iterable[str]) -> list[Statement]:
    """The statements behind `first` that write the same tensor, up to one that binds its name to
    something else: not to the same elements, in another loop over them."""

    def writes(statement: Statement, name: str) -> bool:
        return bool(written_parts(tree, statement, name))

    key = next((n for n in names if writes(first, n)), None)
    if key is None:
        return []
    elements = [_elements(tree, s, key) for s in tree.ancestors(first)]
    scope = tree.scope_of(first)
    inside = [s for s in tree.statements if tree.scope_of(s) is scope]
    found: list[Statement] = []
    for statement in inside[next(i for i, s in enumerate(inside) if s is first) + 1 :]:
        bound = single_targets(statement)
        binds = isinstance(statement, (cst.Assign, cst.AnnAssign, cst.For, cst.With))
        again = _elements(tree, statement, key)
        binds = binds and not (again and again in elements)
        if binds and any(same(tree, t, key) for t in bound):
            break
        if isinstance(statement, cst.BaseSmallStatement) and writes(statement, key):
            found.append(statement)
    return found


def _elements(tree: Tree, loop: cst.CSTNode, name: str) -> str:
    """What a loop takes the elements of that get a name: `net.parameters()`."""
    found = iterated(loop.iter, loop.target, name) if isinstance(loop, cst.For) else None
    return "" if found is None else tree.code(found)


def _runs(tree: Tree, writes: list[Statement], start: list[Statement]) -> list[list[Statement]]:
    """The writes in groups that stand together, the first of them at least `start`."""
    runs = [list(start)]
    for write in writes[1:]:
        if any(write is s for s in runs[-1]):
            continue
        block = tree.block_of(write)
        inside = [] if block is None else statements_in(block)
        at = next((i for i, s in enumerate(inside) if s is write), 0)
        if at and inside[at - 1] is runs[-1][-1]:
            runs[-1].append(write)
        else:
            runs.append([write])
    return runs
