"""No graph of the gradient where nothing differentiates it."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("first_order", lambda s: s.without("create_graph"), when=lambda d: not d.again),
)
