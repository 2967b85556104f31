"""Clear the gradients once the step has used them, or before the backward that is meant for it."""

from autograd_explain.rewrite import zero_grad_after
from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.training_step import zero_grad_before, zero_grad_beside

from .diagnose import Details


def _before_backward(site: Site[Details]) -> Edits | None:
    """What other losses leave in `.grad` after the step has to go too."""
    own = site.details.own_backward
    return None if own is None else zero_grad_before(site.program, site.place, own)


propose: Propose[Details] = by_table(
    Fix("clear_before_backward", _before_backward, changes=True),
    Fix(
        "clear_together",
        at_place(zero_grad_beside),
        when=lambda d: d.own_backward is None,
        changes=True,
    ),
    Fix(
        "clear_after_step",
        at_place(zero_grad_after),
        when=lambda d: d.own_backward is None,
        changes=True,
    ),
)
