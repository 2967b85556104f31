"""No graph of the gradient where nothing differentiates it; else one that is not in `.grad`."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.derivative_taken import derivative_taken

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("first_order", lambda s: s.without("create_graph"), when=lambda d: not d.again),
    Fix("derivative_itself", at_place(derivative_taken), when=lambda d: d.again),
)
