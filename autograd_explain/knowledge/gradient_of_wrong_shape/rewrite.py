"""The gradient transposed where its sizes are in reverse, given or denied dimensions of size 1,
summed where it has more dimensions."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details


def _summed(site: Site[Details]) -> Edits | None:
    """`grad * x` -> `(grad * x).sum((0, 2))`, also for `(grad * x).sum()`."""
    dims, reduced = site.details.summed, site.details.reduced
    given = str(dims[0]) if len(dims) == 1 else str(dims)
    whole = site.at(*reduced).replaced(f"{{owner}}.sum({given})")
    return whole if reduced else site.replaced(f"{{x}}.sum({given})")


def _summed_to_size(site: Site[Details]) -> Edits | None:
    """`(grad * x).sum(-1)` -> `(grad * x).sum_to_size(w.shape)`: over what broadcasting added."""
    to = "{owner}.sum_to_size({to}.shape)"
    return site.at(*site.details.reduced).replaced(to, to=site.details.like)


propose: Propose[Details] = by_table(
    Fix("transpose", lambda s: s.called("t"), when=lambda d: d.transposed),
    # `grad_alpha` -> `grad_alpha.reshape(alpha.shape)`
    Fix("keep_ones", lambda s: s.replaced("{x}.reshape({to})", to=s.details.reshaped)),
    Fix("sum_rest", _summed, when=lambda d: bool(d.summed)),
    Fix("sum_rest", _summed_to_size),
)
