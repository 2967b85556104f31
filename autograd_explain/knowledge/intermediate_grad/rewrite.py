"""Ask for the gradient before backward runs."""

from collections.abc import Iterator

from autograd_explain.model import Finding
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.keep_gradient import retained


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    edits = retained(program, finding)
    if edits:
        yield Proposal("retain_grad", edits)
