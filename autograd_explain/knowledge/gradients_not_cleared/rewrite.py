"""Clear the gradients once the step has used them, or before the backward that is meant for it."""

import libcst as cst

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.draft import Drafts
from autograd_explain.rewrite.transforms.training_step import zero_grad_after, zero_grad_before

from .diagnose import Details


def _reset(site: Site[Details]) -> Edits | None:
    """`delta.grad = None` behind the line that updates `delta` or keeps its gradient; before the
    backward, where that is the function's last."""
    drafts = Drafts()
    for place, leaf in site.details.updates:
        kept = isinstance(site.at(place).own, cst.Return)
        at = site.at(site.details.backward if kept else place)
        draft = drafts[at.tree]
        (draft.before if kept else draft.after)(at.own, f"{leaf}.grad = None")
    return drafts.edits()


propose: Propose[Details] = by_table(
    Fix("reset_by_hand", _reset, when=lambda d: d.updates != ()),
    # What other losses leave in `.grad` after the step has to go too.
    Fix(
        "clear_before_backward",
        lambda s: zero_grad_before(s.program, s.details.step or s.place, s.details.own_backward),
    ),
    Fix(
        "clear_after_step",
        at_place(zero_grad_after),
        when=lambda d: d.own_backward is None and not d.updates,
    ),
    changes=True,
)
