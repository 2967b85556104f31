"""Ask for the gradient of a leaf; it needs no keeping."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "requires_grad",
        lambda s: s.instead("{tensor}.requires_grad_()", tensor=s.details.tensor),
        when=lambda d: d.uncut,
    )
)
