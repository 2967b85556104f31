"""The gradients cleared before the backward that fills them."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.move_statement import move_before

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "zero_grad_first",
        lambda s: move_before(s.program, s.place, s.details.backward),
        when=lambda d: d.cleared,
    )
)
