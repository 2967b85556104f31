"""Ones in the shape of the output: the gradient of its sum."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "ones_like",
        lambda s: expression_replaced(s.program, s.place, f"{{torch}}.ones_like({s.details.root})"),
        when=lambda d: d.ones,
        changes=True,
    )
)
