"""The gradient transposed where its sizes are in reverse, given or denied dimensions of size 1,
summed where it has more dimensions."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details


def _summed(site: Site[Details]) -> Edits | None:
    """`grad * x` -> `(grad * x).sum((0, 2))`, also for `(grad * x).sum()`; `(grad * x).sum(-1)` ->
    `(grad * x).sum_to_size(w.shape)`: over what broadcasting added."""
    details = site.details
    dims = details.summed[0] if len(details.summed) == 1 else details.summed
    call = "sum_to_size({to})" if details.size else f"sum({dims})"
    value = "{owner}" if details.reduced else "{x}"
    places = details.reduced or (details.at,)
    return site.at(*places).replaced(f"{value}.{call}", to=details.size)


def _with_ones(site: Site[Details]) -> Edits | None:
    """`grad_w` -> `grad_w.reshape(w.shape)`, `grad.sum(0).squeeze(0)` -> `grad.sum(0)`"""
    details = site.details
    template = "{owner}" if details.squeezed else "{x}.reshape({to})"
    return site.at(details.at).replaced(template, to=details.reshaped)


propose: Propose[Details] = by_table(
    Fix("transpose", lambda s: s.at(s.details.at).called("t"), when=lambda d: d.transposed),
    Fix("keep_ones", _with_ones),
    Fix("sum_rest", _summed, when=lambda d: bool(d.summed or d.size)),
)
