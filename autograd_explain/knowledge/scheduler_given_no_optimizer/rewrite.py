"""The optimizer that trains what was given."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("optimizer", lambda s: s.replaced("{code}", code=s.details.optimizer))
)
