"""The optimizer that trains what was given."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "optimizer",
        lambda s: expression_replaced(s.program, s.place, s.details.optimizer),
        when=lambda d: d.optimizer != "",
    )
)
