"""Clear the gradients once the step has used them, or before the backward that is meant for it."""

import ast
from functools import partial

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.edits import each
from autograd_explain.rewrite.transforms.spot import Spot
from autograd_explain.rewrite.transforms.training_step import (
    zero_grad_after,
    zero_grad_before,
)

from .diagnose import Details


def _is_stepped(details: Details) -> bool:
    return details.own_backward is None and not details.updates


def _reset(site: Site[Details]) -> Edits | None:
    """`delta.grad = None` behind the line that updates `delta` or keeps its gradient; before the
    backward, where that is the function's last."""
    reset = partial(_reset_at, backward=site.details.backward)
    updates = site.details.updates
    return each(site.program, ((partial(reset, leaf=leaf), place) for place, leaf in updates))


def _reset_at(program: Program, place: Place, leaf: str, backward: Place | None) -> Edits | None:
    if isinstance(program.statement_at(place), ast.Return):
        return Spot(program, backward).before("{leaf}.grad = None", leaf=leaf)
    return Spot(program, place).behind("{leaf}.grad = None", leaf=leaf)


propose: Propose[Details] = by_table(
    Fix("reset_by_hand", _reset, when=lambda d: d.updates != ()),
    # What other losses leave in `.grad` after the step has to go too.
    Fix(
        "clear_before_backward",
        lambda s: zero_grad_before(s.program, s.details.step or s.place, s.details.own_backward),
    ),
    Fix("clear_after_step", at_place(zero_grad_after), when=_is_stepped),
    changes=True,
)
