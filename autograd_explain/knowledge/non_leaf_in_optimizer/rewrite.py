"""Give the optimizer a leaf: compute first and ask for the gradient last, or give it the leaf."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.casts import requires_grad_last
from autograd_explain.rewrite.transforms.keep_gradient import flag_moved, new_leaf
from autograd_explain.rewrite.transforms.uncut import apply_patches, replacement

from .diagnose import Details
from .table_rewrite import plain_attribute


def _whole(site: Site[Details]) -> Edits | None:
    whole = site.details.whole
    return None if whole is None else expression_replaced(site.program, whole.place, whole.code)


def _parameters(site: Site[Details]) -> Edits | None:
    """Every property in the call at once: the next one would be refused in its turn."""
    reads = site.details.properties
    return apply_patches(p for read in reads for p in replacement(site.program, *read))


def _computed(details: Details) -> bool:
    return not details.table and details.whole is None and not details.properties


propose: Propose[Details] = by_table(
    Fix("attribute", at_place(plain_attribute), when=lambda d: d.table and d.trained),
    Fix("parameter", _parameters, when=lambda d: d.properties != ()),
    Fix("whole", _whole, changes=True),
    Fix("requires_grad_last", at_place(requires_grad_last), when=_computed),
    Fix("requires_grad_last", lambda s: flag_moved(s.program, s.finding), when=_computed),
    Fix("new_leaf", at_place(new_leaf), when=_computed, changes=True),
)
