"""The gradient transposed where its sizes are in reverse, summed where it has more dimensions."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import call_behind, expression_replaced

from .diagnose import Details


def _summed(site: Site[Details]) -> Edits | None:
    """`grad * x` -> `(grad * x).sum((0, 2))`."""
    dims = site.details.summed
    given = str(dims[0]) if len(dims) == 1 else str(dims)
    return expression_replaced(site.program, site.place, f"{{x}}.sum({given})")


propose: Propose[Details] = by_table(
    Fix("transpose", at_place(call_behind, "t"), when=lambda d: d.transposed),
    Fix("sum_rest", _summed, when=lambda d: bool(d.summed)),
)
