"""Let every round count: a backward and a step in each, or one backward of their sum."""

import libcst as cst

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.analysis.effects import fresh
from autograd_explain.rewrite.engine.cst_tools import called_on, find, make, targets
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Statement, Tree, statement_at, statements_in

from .diagnose import Details


def _into_loop(site: Site[Details]) -> Edits | None:
    """What stands behind the loop, up to the step, becomes the end of its body."""
    tree, loop = statement_at(site.program, site.details.loop)
    step, backward = tree.statement(site.details.step), tree.statement(site.details.backward)
    order, at = tree.siblings(loop)
    if not isinstance(loop, cst.For) or not {step, backward} <= {*order[at:]}:
        return None
    run = order[at + 1 : tree.siblings(step)[1] + 1]
    clears = any(called_on(s, "zero_grad") is not None for s in run)
    if not all(isinstance(s, cst.Expr) for s in run) or not (clears or site.details.each):
        return None
    return Draft(tree).move(run, statements_in(loop.body)[-1], after=True).edits()


def _summed(site: Site[Details]) -> Edits | None:
    """The rounds' losses are added up, and the backward goes back from the sum."""
    details = site.details
    tree, loop = statement_at(site.program, details.loop)
    backward, bound = tree.statement(details.backward), tree.statement(details.bound)
    if not isinstance(loop, cst.For) or backward is None or bound is None:
        return None
    draft = Draft(tree)
    total = cst.Name(details.sum or fresh(tree, loop, "total"))
    if not details.sum:
        draft.before(loop, [make("{t} = 0", t=total)])
        loss = cst.Name(details.loss)
        draft.after(_last(tree, bound, details.loss), [make("{t} = {t} + {x}", t=total, x=loss)])
    own = _between(tree, loop, backward, details.loss)
    for node in find(tree, own, details.loss):
        draft.replace(node, total)
    return draft.edits()


def _last(tree: Tree, bound: Statement, name: str) -> Statement:
    """The last statement of the block that gives the loss another value: `loss = loss / n`."""
    order, at = tree.siblings(bound)
    return [s for s in order[at:] if any(tree.code(t) == name for t in targets(s))][-1]


def _between(tree: Tree, loop: Statement, backward: Statement, name: str) -> Statement:
    """The first statement behind the loop that goes on with the loss, else the backward."""
    order, at = tree.siblings(loop)
    scaled = (s for s in order[at + 1 :] if isinstance(s, cst.Assign) and find(tree, s, name))
    before = (s for s in scaled if tree.start(s) < tree.start(backward))
    return next(before, backward)


propose: Propose[Details] = by_table(
    Fix("into_loop", _into_loop, when=lambda d: d.each),
    Fix("sum_up", _summed),
    Fix("into_loop", _into_loop),
    changes=True,
)
