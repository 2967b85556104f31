"""Dense gradients for a dense optimizer, or the optimizer for dense gradients."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced, keyword_removed

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("dense", at_place(keyword_removed, "sparse"), when=lambda d: not d.dense),
    Fix(
        "adam",
        at_place(expression_replaced, "{owner}.Adam{arguments}"),
        when=lambda d: d.dense,
        changes=True,
    ),
)
