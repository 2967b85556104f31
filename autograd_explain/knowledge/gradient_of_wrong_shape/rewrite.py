"""The gradient transposed where its sizes are in reverse, given or denied dimensions of size 1,
summed where it has more dimensions."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details


def _summed(site: Site[Details]) -> Edits | None:
    """`grad * x` -> `(grad * x).sum((0, 2))`, also for `(grad * x).sum()`."""
    dims, reduced = site.details.summed, site.details.reduced
    given = str(dims[0]) if len(dims) == 1 else str(dims)
    whole = site.at(*reduced).replaced(f"{{owner}}.sum({given})")
    return whole if reduced else site.at(site.details.at).replaced(f"{{x}}.sum({given})")


def _summed_to_size(site: Site[Details]) -> Edits | None:
    """`(grad * x).sum(-1)` -> `(grad * x).sum_to_size(w.shape)`: over what broadcasting added."""
    to = "{owner}.sum_to_size({to})"
    return site.at(*site.details.reduced).replaced(to, to=site.details.size)


def _with_ones(site: Site[Details]) -> Edits | None:
    """`grad_w` -> `grad_w.reshape(w.shape)`, `grad.sum(0).squeeze(0)` -> `grad.sum(0)`"""
    details = site.details
    template = "{owner}" if details.squeezed else "{x}.reshape({to})"
    return site.at(details.at).replaced(template, to=details.reshaped)


propose: Propose[Details] = by_table(
    Fix("transpose", lambda s: s.at(s.details.at).called("t"), when=lambda d: d.transposed),
    Fix("keep_ones", _with_ones),
    Fix("sum_rest", _summed, when=lambda d: bool(d.summed)),
    Fix("sum_rest", _summed_to_size),
)
