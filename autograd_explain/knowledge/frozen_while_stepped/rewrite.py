"""Thaw what was frozen for another optimizer's turn when that has stepped, and what was frozen in
the midst of a loss before its backward; a copy gets parameters of its own."""

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Statement, Tree, statement_at, statements_in
from autograd_explain.rewrite.transforms.copied_object import deep_copied
from autograd_explain.rewrite.transforms.move_statement import lifted
from autograd_explain.rewrite.transforms.undone import undone, whole_loop

from .diagnose import Details


def _thawed_behind(site: Site[Details]) -> Edits | None:
    """Behind the step for which it was frozen; what thaws it too late moves there."""
    tree, frozen = statement_at(site.program, site.details.frozen[0])
    other, turn = statement_at(site.program, site.details.turn)
    if frozen is None or turn is None:
        return None
    late = _late(site, other, turn)
    if late is not None:
        return Draft(other).move([late], turn, after=True).edits()
    thaw = undone(tree, whole_loop(tree, frozen), site.details.opposite)
    return None if thaw is None else Draft(other).after(turn, [thaw]).edits()


def _late(site: Site[Details], tree: Tree, turn: Statement) -> Statement | None:
    """The thawing statement, where it stands in the block of that step or deeper."""
    other, own = statement_at(site.program, site.details.thawed)
    if own is None or other is not tree:
        return None
    level = whole_loop(tree, own)
    return level if tree.block_of(level) is tree.block_of(turn) else None


def _thawed_before(site: Site[Details]) -> Edits | None:
    """Frozen once for something else: before the loop that trains, else at the end of the block
    that froze; at the line itself or, where that calls a function, in there."""
    edits = (_thawed_after_use(site, place) for place in site.details.frozen)
    return next((e for e in edits if e is not None), None)


def _thawed_after_use(site: Site[Details], place: Place) -> Edits | None:
    tree, frozen = statement_at(site.program, place)
    other, step = statement_at(site.program, site.details.step)
    if frozen is None or step is None:
        return None
    own = whole_loop(tree, frozen)
    thaw = undone(tree, own, site.details.opposite)
    block = tree.block_of(own)
    if thaw is None or block is None:
        return None
    training = lifted(tree, step, block) if other is tree else None
    if training is step or training is own:
        return Draft(tree).remove(own).edits()
    if training is not None:
        return Draft(tree).before(training, [thaw]).edits()
    last, draft = statements_in(block)[-1], Draft(tree)
    ends = isinstance(last, (cst.Return, cst.Raise))
    return (draft.before if ends else draft.after)(last, [thaw]).edits()


def _thawed_for_backward(site: Site[Details]) -> Edits | None:
    """All that the optimizer holds, whatever the parts are called of which it was given them."""
    lines = (
        "for group in {optimizer}.param_groups:\n"
        '    for parameter in group["params"]:\n'
        "        parameter.requires_grad_(True)\n"
    )
    details = site.details
    return site.at(details.backward).before(lines, optimizer=details.optimizer)


propose: Propose[Details] = by_table(
    Fix("deep_copy", lambda s: deep_copied(s.program, s.details.copied, of="{arguments}")),
    Fix("thaw_held", _thawed_for_backward),
    Fix("thaw_behind", _thawed_behind, when=lambda d: d.turn is not None),
    Fix("thaw_before", _thawed_before, when=lambda d: d.turn is None),
    changes=True,
)
