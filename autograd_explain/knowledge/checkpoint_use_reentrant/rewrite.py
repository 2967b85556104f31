"""`use_reentrant=False`."""

from autograd_explain.rewrite.engine.fixes import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import keyword_set

propose: Propose[object] = by_table(
    Fix("non_reentrant", lambda s: keyword_set(s.program, s.place, "use_reentrant", "False")),
)
