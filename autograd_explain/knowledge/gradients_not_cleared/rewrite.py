"""Clear the gradients once the step has used them, or before the backward that is meant for it."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import zero_grad_after
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.training_step import zero_grad_before


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    step = finding.event(What.CAUSE)
    if step is None or step.place is None:
        return
    for own in finding.places.get("own_backward", ()):
        # What other losses leave in `.grad` after the step has to go too.
        edits = zero_grad_before(program, step.place, own)
        if edits:
            yield Proposal(
                "clear_before_backward",
                edits,
                Safety.CHANGES_MEANING,
                intended_difference=True,
            )
        return
    edits = zero_grad_after(program, step.place)
    if edits:
        yield Proposal("clear_after_step", edits, Safety.CHANGES_MEANING, intended_difference=True)
