"""Take back what was done for another use when that is over; compute what was kept again."""

import libcst as cst

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.analysis.effects import fresh
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Block, Statement, Tree, statement_at, statements_in
from autograd_explain.rewrite.transforms.remove_memoization import computed_anew
from autograd_explain.rewrite.transforms.undone import undone, whole_loop

from .diagnose import Details


def _undone_behind(site: Site[Details]) -> Edits | None:
    """At the end of the block that did it; before a `return`, whose value is computed first."""
    tree, own = statement_at(site.program, site.details.call)
    if own is None or not site.details.opposite:
        return None
    loop = whole_loop(tree, own)
    undo, block = undone(site.program, tree, loop, site.details.opposite), tree.block_of(loop)
    if undo is None or block is None:
        return None
    last = _last(block)
    draft = Draft(tree)
    if not isinstance(last, cst.Return):
        return draft.after(last, [undo]).edits()
    if last.value is None or isinstance(last.value, cst.Name):
        return draft.before(last, [undo]).edits()
    return draft.instead(last, _returned_behind(tree, last, undo)).edits()


def _last(block: Block) -> Statement:
    """The last statement, in a `with` at the end the last one of that where it returns."""
    last = statements_in(block)[-1]
    inner = last
    while isinstance(inner, cst.With):
        inner = statements_in(inner.body)[-1]
    return inner if isinstance(inner, cst.Return) else last


def _returned_behind(tree: Tree, last: cst.Return, undo: Statement) -> list[Statement]:
    """The value kept, what is done before it is returned, and the return."""
    name = cst.Name(fresh(tree, last, "result"))
    assert last.value is not None
    kept = cst.Assign([cst.AssignTarget(name)], last.value)
    return [kept, undo, last.with_changes(value=name)]


def _computed(site: Site[Details]) -> Edits | None:
    memory = site.details.memory
    return None if memory is None else computed_anew(site.program, memory.place)


propose: Propose[Details] = by_table(
    Fix("compute", _computed, changes=True, intended_difference=True),
    Fix("undo", _undone_behind, changes=True, intended_difference=True),
)
