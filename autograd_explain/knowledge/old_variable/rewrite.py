"""A tensor as it is, or made of the number."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("plain", lambda s: s.replaced("{data}", data=s.details.data), when=lambda d: not d.number),
    Fix(
        "tensor",
        lambda s: s.replaced("{torch}.tensor({x})", x=s.details.data),
        when=lambda d: d.number,
        changes=True,
    ),
)
