"""One update after the steps; one unscale_ for each."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "update",
        lambda s: s.behind("{scaler}.update()", scaler=s.details.scaler),
        when=lambda d: not d.updated,
    ),
    Fix("once", lambda s: s.removed(), when=lambda d: d.again),
)
