"""Make the result the leaf; where the leaf has a name of its own, keep the gradient as well."""

from autograd_explain.rewrite import dtype_in_constructor, requires_grad_last
from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.keep_gradient import (
    augmented_update,
    detached_leaf,
    flag_moved,
    in_place_update,
    new_leaf,
    retained,
)

from .diagnose import Details


def _is_cast(details: Details) -> bool:
    return details.update is None and not details.named


def _is_update(details: Details) -> bool:
    return details.update is not None


def _counts_on_leaf(details: Details) -> bool:
    """Whether the program resets the gradient itself, which a new leaf does not have."""
    return details.update is not None and details.update.cleared


def _detached(site: Site[Details]) -> Edits | None:
    update = site.details.update
    return None if update is None else detached_leaf(site.program, site.place, update.flagged)


propose: Propose[Details] = by_table(
    Fix("update", at_place(in_place_update), when=_counts_on_leaf),
    Fix("update", at_place(augmented_update), when=_is_update),
    Fix("detached", _detached, when=_is_update),
    Fix("update", at_place(in_place_update), when=_is_update),
    Fix("constructor", at_place(dtype_in_constructor), when=_is_cast),
    Fix("requires_grad_last", at_place(requires_grad_last), when=_is_cast),
    Fix("requires_grad_last", lambda s: flag_moved(s.program, s.finding), when=_is_cast),
    Fix("retain_grad", lambda s: retained(s.program, s.finding), when=lambda d: d.update is None),
    Fix("new_leaf", at_place(new_leaf), when=_is_cast, changes=True),
)
