"""Give the optimizer a leaf: compute first and ask for the gradient last, or give it the leaf."""

from autograd_explain.rewrite import (
    dtype_in_constructor,
    requires_grad_last,
)
from autograd_explain.rewrite.engine.fixes import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.keep_gradient import flag_moved, new_leaf

from .diagnose import Details
from .table_rewrite import plain_attribute

propose: Propose[Details] = by_table(
    Fix(
        "attribute",
        lambda s: plain_attribute(s.program, s.place),
        when=lambda d: d.table and d.trained,
    ),
    Fix(
        "constructor",
        lambda s: dtype_in_constructor(s.program, s.place),
        when=lambda d: not d.table,
    ),
    Fix(
        "requires_grad_last",
        lambda s: requires_grad_last(s.program, s.place),
        when=lambda d: not d.table,
    ),
    Fix(
        "requires_grad_last",
        lambda s: flag_moved(s.program, s.finding),
        when=lambda d: not d.table,
    ),
    Fix(
        "new_leaf",
        lambda s: new_leaf(s.program, s.place),
        when=lambda d: not d.table,
        changes=True,
    ),
)
