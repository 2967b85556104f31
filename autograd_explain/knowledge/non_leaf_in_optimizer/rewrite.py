"""Give the optimizer a leaf: compute first and ask for the gradient last, or give it the leaf."""

from functools import partial

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.edits import Step
from autograd_explain.rewrite.transforms.casts import flag_moved, requires_grad_last
from autograd_explain.rewrite.transforms.keep_gradient import new_leaf
from autograd_explain.rewrite.transforms.uncut import apply_patches, replacement

from .diagnose import Details
from .table_rewrite import plain_attribute


def _whole(site: Site[Details]) -> Edits | None:
    whole = site.details.whole
    return None if whole is None else site.at(whole.place).replaced(whole.code)


def _parameters(site: Site[Details]) -> Edits | None:
    """Every property in the call at once: the next one would be refused in its turn."""
    reads = site.details.properties
    return apply_patches(p for read in reads for p in replacement(site.program, *read))


def _at_all(site: Site[Details], transform: Step) -> Edits | None:
    """The edit at every tensor that is refused for the same reason, or at the one where it cannot
    be made at each of the others."""
    together = site.at(site.place, *site.details.others).each(transform)
    return together or transform(site.program, site.place)


def _flag_last(site: Site[Details]) -> Edits | None:
    return _at_all(site, requires_grad_last) or flag_moved(site.program, site.finding)


def _computed(details: Details) -> bool:
    return not details.table and details.whole is None and not details.properties


propose: Propose[Details] = by_table(
    Fix("attribute", at_place(plain_attribute), when=lambda d: d.table and d.trained),
    Fix("parameter", _parameters, when=lambda d: d.properties != ()),
    Fix("whole", _whole, changes=True),
    Fix("requires_grad_last", _flag_last, when=_computed),
    Fix("new_leaf", partial(_at_all, transform=new_leaf), when=_computed, changes=True),
)
