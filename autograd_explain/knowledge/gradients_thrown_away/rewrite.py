"""Clear before backward."""

from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import zero_grad_first
from autograd_explain.rewrite.engine.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cleared, backward = finding.event(What.CAUSE), finding.places.get("backward", ())
    if cleared is None or cleared.place is None or not backward:
        return
    edits = zero_grad_first(program, cleared.place, backward[0])
    if edits:
        yield Proposal("clear_first", edits, Safety.CHANGES_MEANING, intended_difference=True)
