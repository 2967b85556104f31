"""Clear the gradients as soon as the step has used them."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import zero_grad_after
from autograd_explain.rewrite.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    step = finding.event(What.CAUSE)
    edits = None if step is None or step.place is None else zero_grad_after(program, step.place)
    if edits:
        yield Proposal("clear_after_step", edits, Safety.CHANGES_MEANING, intended_difference=True)
