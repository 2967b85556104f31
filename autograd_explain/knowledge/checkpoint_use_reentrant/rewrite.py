"""`use_reentrant=False`."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import keyword_set

propose: Propose[object] = by_table(
    Fix("non_reentrant", at_place(keyword_set, "use_reentrant", "False"))
)
