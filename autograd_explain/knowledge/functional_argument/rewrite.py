"""A tensor of the number."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("tensor", lambda s: s.replaced("{torch}.tensor({x})"), when=lambda d: d.number)
)
