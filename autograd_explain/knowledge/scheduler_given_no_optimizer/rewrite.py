"""The optimizer that trains what was given."""

from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.op != "replace":
        return
    edits = expression_replaced(program, cause.place, finding.facts["optimizer"])
    if edits:
        yield Proposal("optimizer", edits)
