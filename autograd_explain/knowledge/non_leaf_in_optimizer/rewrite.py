"""Give the optimizer a leaf: compute first and ask for the gradient last, or give it the leaf."""

from autograd_explain.rewrite import dtype_in_constructor, requires_grad_last
from autograd_explain.rewrite.engine.fixes import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.keep_gradient import flag_moved, new_leaf

from .diagnose import Details
from .table_rewrite import plain_attribute

propose: Propose[Details] = by_table(
    Fix("attribute", at_place(plain_attribute), when=lambda d: d.table and d.trained),
    Fix("constructor", at_place(dtype_in_constructor), when=lambda d: not d.table),
    Fix("requires_grad_last", at_place(requires_grad_last), when=lambda d: not d.table),
    Fix(
        "requires_grad_last", lambda s: flag_moved(s.program, s.finding), when=lambda d: not d.table
    ),
    Fix("new_leaf", at_place(new_leaf), when=lambda d: not d.table, changes=True),
)
