"""The gradients cleared before the backward that fills them."""

from autograd_explain.rewrite import move_before
from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.proposal import Edits

from .diagnose import Details


def _zero_grad_first(site: Site[Details]) -> Edits | None:
    backward = site.details.backward
    return None if backward is None else move_before(site.program, site.place, backward)


propose: Propose[Details] = by_table(
    Fix("zero_grad_first", _zero_grad_first, when=lambda d: d.cleared)
)
