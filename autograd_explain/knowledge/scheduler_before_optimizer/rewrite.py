"""The scheduler's step behind the optimizer's."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.move_statement import move_after

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("after_step", lambda s: move_after(s.program, s.place, s.details.step), changes=True)
)
