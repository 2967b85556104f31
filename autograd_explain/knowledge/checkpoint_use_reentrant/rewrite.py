"""`use_reentrant=False`."""

from autograd_explain.rewrite import Fix, Propose, by_table

propose: Propose[object] = by_table(
    Fix("non_reentrant", lambda s: s.given("use_reentrant", "False"))
)
