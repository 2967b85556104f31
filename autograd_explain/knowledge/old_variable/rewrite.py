"""A tensor as it is, or made of the number."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "plain",
        lambda s: expression_replaced(s.program, s.place, s.details.data),
        when=lambda d: d.data != "" and not d.number,
    ),
    Fix(
        "tensor",
        lambda s: expression_replaced(s.program, s.place, f"{{torch}}.tensor({s.details.data})"),
        when=lambda d: d.data != "" and d.number,
        changes=True,
    ),
)
