"""Clear the gradients once the step has used them, or before the backward that is meant for it."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table, zero_grad_after
from autograd_explain.rewrite.transforms.training_step import zero_grad_before, zero_grad_beside

from .diagnose import Details

propose: Propose[Details] = by_table(
    # What other losses leave in `.grad` after the step has to go too.
    Fix(
        "clear_before_backward",
        lambda s: zero_grad_before(s.program, s.place, s.details.own_backward),
        changes=True,
    ),
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
