"""Ask for the rate that is in use."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

propose: Propose[object] = by_table(
    Fix("last", at_place(expression_replaced, "{owner}.get_last_lr{arguments}"))
)
