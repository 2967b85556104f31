"""Clear before backward."""

from autograd_explain.rewrite import zero_grad_first
from autograd_explain.rewrite.engine.fixes import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "clear_first",
        lambda s: zero_grad_first(s.program, s.place, s.details.backward),
        changes=True,
    )
)
