"""Step after the last backward that needs the old parameters, or compute the loss after the step."""

from __future__ import annotations

from collections.abc import Iterator

from autograd_explain.model import Edit, Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import move_after, toggled_run
from autograd_explain.rewrite.proposal import Proposal

Edits = tuple[Edit, ...] | None


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    step, failed = _place(finding, What.CHANGED), _place(finding, What.FAILED)
    loss = _place(finding, What.CREATED)
    if step is None:
        return
    later = _proposal("move_step", _move_step(program, step, failed), Safety.SAME_GRADIENTS)
    again = _proposal("recompute", _move_loss(program, loss, step), Safety.CHANGES_MEANING)
    # Where the failing backward adds to the gradients that the step uses, waiting for it would
    # change the step itself.
    shares = finding.variant == "shares_gradients"
    for proposal in (again, later) if shares else (later, again):
        if proposal is not None:
            yield proposal


def _proposal(fix: str, edits: Edits, safety: Safety) -> Proposal | None:
    if not edits:
        return None
    # The loss computed after the step sees the new parameters: another value on purpose.
    return Proposal(fix, edits, safety, intended_difference=fix == "recompute")


def _move_step(program: Program, step: Place, failed: Place | None) -> Edits:
    return None if failed is None else move_after(program, step, failed)


def _move_loss(program: Program, loss: Place | None, step: Place) -> Edits:
    """The statement that computes the loss goes behind the step, with what is switched around it."""
    if loss is None:
        return None
    first, last = toggled_run(program, loss) or (loss, loss)
    return move_after(program, first, step, last)


def _place(finding: Finding, what: What) -> Place | None:
    event = finding.event(what)
    return None if event is None else event.place
