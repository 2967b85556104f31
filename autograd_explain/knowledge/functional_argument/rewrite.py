"""A tensor of the number."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("tensor", at_place(expression_replaced, "{torch}.tensor({x})"), when=lambda d: d.number)
)
