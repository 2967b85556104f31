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


def _stays_leaf(details: Details) -> bool:
    """Whether each update is to be written into the leaf: new leaves do not suit a program that
    resets the gradient itself, and are not what an update outside the graph meant."""
    return details.update is None or any(u.cleared for u in details.updates)


def _in_place(site: Site[Details], augmented: bool = False) -> Edits | None:
    updates = {u.value: u.last and not u.cleared for u in site.details.updates}
    return updates_in_place(site.program, updates, augmented)


def _new_leaves(site: Site[Details]) -> Edits | None:
    """Each round begins with tensors that ask for their gradient; there is none to reset."""
    updates = [u for u in site.details.updates if u.last]
    method = f"detach().{FLAG}" if site.details.recorded else FLAG
    if not updates or any(u.cleared for u in updates):
        return None
    return site.at(*(u.value for u in updates)).called(method)


def _detached(site: Site[Details]) -> Edits | None:
    update = site.details.update
    return None if update is None else new_leaf(site.program, site.place, update.flagged)


def _is_alone(details: Details) -> bool:
    return details.update is not None and not details.updates


propose: Propose[Details] = by_table(
    Fix("detached", _new_leaves, when=lambda d: d.asked),
    Fix("update", _in_place, when=_stays_leaf),
    Fix("update", partial(_in_place, augmented=True), when=_is_update),
    Fix("detached", _new_leaves, when=_is_update),
    Fix("update", _in_place, when=_is_update),
    Fix("detached", _detached, when=_is_alone),
    Fix("update", at_place(in_place_update), when=_is_alone),
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
