"""The right name for an argument of `apply`, where only one parameter is left for it."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("parameter_name", lambda s: s.renamed(*s.details.renamed) if s.details.renamed else None)
)
