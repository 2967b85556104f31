"""`use_reentrant=False` in every checkpoint."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("non_reentrant", lambda s: s.at(*s.details.checkpoints).given("use_reentrant", "False"))
)
