"""Make the result the leaf; where the leaf has a name of its own, keep the gradient as well."""

from functools import partial

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.casts import flag_moved, requires_grad_last
from autograd_explain.rewrite.transforms.keep_gradient import (
    FLAG,
    in_place_update,
    new_leaf,
    retained,
    updates_in_place,
)

from .diagnose import Details


def _is_cast(details: Details) -> bool:
    return not (_is_update(details) or details.named or details.parameter)


def _is_kept(details: Details) -> bool:
    return not (_is_update(details) or details.parameter)


def _is_update(details: Details) -> bool:
    return details.update is not None or details.updates != ()


def _is_cleared(details: Details) -> bool:
    """Whether the program resets the gradient itself, which new leaves do not have."""
    return any(u.cleared for u in details.updates)


def _stays_leaf(details: Details) -> bool:
    """Whether each update is to be written into the leaf: it was meant outside of the graph."""
    unrecorded = details.updates != () and not (details.asked or details.update is not None)
    return unrecorded or _is_cleared(details)


def _in_place(site: Site[Details], augmented: bool = False) -> Edits | None:
    updates = {u.value: u.last and not u.cleared for u in site.details.updates}
    if updates or augmented:
        return updates_in_place(site.program, updates, augmented)
    return in_place_update(site.program, site.place)


def _new_leaves(site: Site[Details]) -> Edits | None:
    """Each round begins with tensors that ask for their gradient."""
    update, last = site.details.update, [u.value for u in site.details.updates if u.last]
    steps = ("detach" if site.details.recorded else "", FLAG)
    if update is not None and update.flagged:
        steps = ("detach", "")  # the program asks for it itself
    return site.at(*(last or [site.place])).called("().".join(filter(None, steps)))


propose: Propose[Details] = by_table(
    Fix("update", _in_place, when=_stays_leaf),
    Fix("update", partial(_in_place, augmented=True), when=lambda d: not d.asked),
    Fix("detached", _new_leaves, when=lambda d: _is_update(d) and not _is_cleared(d)),
    Fix("update", _in_place, when=_is_update),
    # A result that the optimizer was not given is trained then, which is what a parameter is for.
    Fix(
        "requires_grad_last",
        at_place(requires_grad_last),
        when=lambda d: d.parameter,
        changes=True,
    ),
    Fix("requires_grad_last", at_place(requires_grad_last), when=_is_cast),
    Fix("requires_grad_last", lambda s: flag_moved(s.program, s.finding), when=_is_cast),
    Fix("retain_grad", lambda s: retained(s.program, s.finding), when=_is_kept),
    Fix("new_leaf", at_place(new_leaf), when=_is_cast, changes=True),
)
