"""The gradients cleared before the backward that fills them."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite import zero_grad_first
from autograd_explain.rewrite.engine.proposal import Proposal


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause, backward = finding.event(What.CAUSE), finding.places.get("backward", ())
    if cause is None or cause.place is None or cause.op != "cleared":
        return
    if backward:
        edits = zero_grad_first(program, cause.place, backward[0])
        if edits:
            yield Proposal("zero_grad_first", edits)
