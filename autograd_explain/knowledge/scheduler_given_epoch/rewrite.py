"""Let the scheduler count."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

propose: Propose[object] = by_table(
    Fix("count", at_place(expression_replaced, "{function}()"), changes=True)
)
