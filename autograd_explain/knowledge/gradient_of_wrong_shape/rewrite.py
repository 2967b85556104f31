"""The gradient transposed where its sizes are in reverse, given or denied dimensions of size 1,
summed where it has more dimensions."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import (
    call_behind,
    expression_replaced,
    expressions_replaced,
)

from .diagnose import Details


def _reshaped(site: Site[Details]) -> Edits | None:
    """`grad_alpha` -> `grad_alpha.reshape(alpha.shape)`."""
    to = f"{{x}}.reshape({site.details.reshaped})"
    return expression_replaced(site.program, site.place, to)


def _summed(site: Site[Details]) -> Edits | None:
    """`grad * x` -> `(grad * x).sum((0, 2))`, also for `(grad * x).sum()`."""
    dims = site.details.summed
    given = str(dims[0]) if len(dims) == 1 else str(dims)
    if site.details.reduced:
        return expressions_replaced(site.program, site.details.reduced, f"{{owner}}.sum({given})")
    return expression_replaced(site.program, site.place, f"{{x}}.sum({given})")


def _summed_to_size(site: Site[Details]) -> Edits | None:
    """`(grad * x).sum(-1)` -> `(grad * x).sum_to_size(w.shape)`: over what broadcasting added."""
    to = f"{{owner}}.sum_to_size({site.details.like}.shape)"
    return expressions_replaced(site.program, site.details.reduced, to)


propose: Propose[Details] = by_table(
    Fix("transpose", at_place(call_behind, "t"), when=lambda d: d.transposed),
    Fix("keep_ones", _reshaped, when=lambda d: bool(d.reshaped)),
    Fix("sum_rest", _summed, when=lambda d: bool(d.summed)),
    Fix("sum_rest", _summed_to_size, when=lambda d: bool(d.like)),
)
