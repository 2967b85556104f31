"""Ask for the gradient of a leaf; it needs no keeping."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import statement_replaced


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or cause.op != "flag":
        return
    name = finding.facts["tensor"]
    edits = statement_replaced(program, cause.place, f"{name}.requires_grad_()\n")
    if edits:
        yield Proposal("requires_grad", edits)
