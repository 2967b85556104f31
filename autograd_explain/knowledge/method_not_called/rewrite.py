"""The brackets that call it."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

propose: Propose[None] = by_table(
    Fix("call", lambda s: expression_replaced(s.program, s.place, "{x}()"), changes=True)
)
