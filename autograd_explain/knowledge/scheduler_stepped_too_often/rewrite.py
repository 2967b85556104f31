"""One step a batch, as the schedule was planned."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("once", lambda s: s.removed(), when=lambda d: d.extra, changes=True)
)
