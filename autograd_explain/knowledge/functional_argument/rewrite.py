"""A tensor of the number."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import torch_expression

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("tensor", at_place(torch_expression, "{torch}.tensor({x})"), when=lambda d: d.number)
)
